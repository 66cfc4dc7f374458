"""Layer 10: what a person can order with a slash: one registry for the terminal and for chats.

`CATALOGUE.find` gives the command of a line; its `act` works on a `Port`, which each face implements.
"""

from hermes.commands.catalogue import CATALOGUE
from hermes.commands.definition import CommandDef, Parsed, Registry, parse
from hermes.commands.port import Look, Port
from hermes.commands.seat import Seat

__all__ = ["CATALOGUE", "CommandDef", "Look", "Parsed", "Port", "Registry", "Seat", "parse"]
