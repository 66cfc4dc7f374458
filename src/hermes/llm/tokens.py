"""How many tokens a text has, near enough to decide when a context is full.

Invariant: an estimate is never zero for something, and grows with its text.
"""

from hermes.domain.model import Usage
from hermes.domain.records import dataclass

BYTES_PER_TOKEN = 3.6
"""What prose and code in JSON take of the tokenizers in use, on the safe side."""

_LEAST, _MOST = 1.5, 8.0
_TRUST = 0.3


def estimate(data: bytes) -> int:
    """Return about how many tokens some encoded text has."""
    return int(len(data) / BYTES_PER_TOKEN) + 1 if data else 0


@dataclass(slots=True)
class Estimator:
    """Learns from what the vendor counted how many bytes a token of one model takes. One for each model."""

    bytes_per_token: float = BYTES_PER_TOKEN
    error: float = 0.5
    """How far the estimates have been off of late, as a share: the bound that is printed with them."""

    def estimate(self, data: bytes) -> int:
        """Return about how many tokens some encoded text has."""
        return self.estimate_size(len(data))

    def estimate_size(self, size: int) -> int:
        """Return about how many tokens so many bytes have."""
        return int(size / self.bytes_per_token) + 1 if size else 0

    def learn(self, size: int, usage: Usage) -> None:
        """Take the size of a request in bytes and what the vendor counted for it."""
        if size < 400 or usage.input < 50:
            return
        self.error += _TRUST * (abs(self.estimate_size(size) - usage.input) / usage.input - self.error)
        seen = min(max(size / usage.input, _LEAST), _MOST)
        self.bytes_per_token += _TRUST * (seen - self.bytes_per_token)
