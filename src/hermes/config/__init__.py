"""Layer 3: settings; one value, one origin.

`load` reads every place a value can come from, the weakest first: default, `config.yaml`, `.env`, the environment,
flags. It imports no third-party module unless there is a file that needs one.
"""

from hermes.config.origin import Default, Given, InDotenv, InEnvironment, InFile, InFlag, Origin
from hermes.config.reading import load
from hermes.config.secret import MASK, Secret, Url
from hermes.config.sections import Database, Events, Jobs, Logging, Redis, Sandbox, Terminal, Time
from hermes.config.settings import SCHEMA, Settings, secrets

__all__ = [
    "MASK",
    "SCHEMA",
    "Database",
    "Default",
    "Events",
    "Given",
    "InDotenv",
    "InEnvironment",
    "InFile",
    "InFlag",
    "Jobs",
    "Logging",
    "Origin",
    "Redis",
    "Sandbox",
    "Secret",
    "Settings",
    "Terminal",
    "Time",
    "Url",
    "load",
    "secrets",
]
