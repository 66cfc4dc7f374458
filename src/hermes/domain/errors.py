"""Every error Hermes raises on purpose, sorted by what the caller can do about it.

    HermesError
    ├── Misconfigured    change a setting or a file, then try again
    │   └── Damaged      stop Hermes, then restore a backup
    ├── Denied           ask somebody who may
    ├── NotFound         name something that exists (and is yours)
    ├── Conflict         read the present state, then decide again
    │   └── LeaseLost    stop: somebody else has the work now
    ├── Unavailable      wait `retry_after` seconds, then try again
    ├── Unsupported      use another way; this one will not work here
    └── LimitReached     spend less, or raise the limit

A message names the thing with its repr, says what was expected, and what to do next.
"""


class HermesError(Exception):
    """The root; catch it to print one clear line."""


class Misconfigured(HermesError):
    """A setting, a file or an installation is not as it must be."""


class Damaged(Misconfigured):
    """The database file is no longer sound."""


class Denied(HermesError):
    """The principal may not do this; nothing was done."""


class NotFound(HermesError):
    """There is no such thing, or it belongs to another tenant: both look the same."""


class Conflict(HermesError):
    """The thing has changed, exists already, or is held by somebody else."""


class LeaseLost(Conflict):
    """The lease ran out and somebody else holds it; nothing of this attempt was stored."""


class Unavailable(HermesError):
    """Something outside does not answer now; the same call may succeed later."""

    def __init__(self, message: str, *, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unsupported(HermesError):
    """This cannot be done with the parts that are here."""


class LimitReached(HermesError):
    """A bound that is there on purpose has been met."""
