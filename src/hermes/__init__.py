"""Hermes carries messages between people, agents and services, and loses none."""

__version__ = "0.1.0"
