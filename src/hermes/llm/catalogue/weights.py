"""The weights that can be had: a row each, with all their bytes pinned by a digest.

Invariant: a file in the home under the name of a row is whole and is what the row says; what is unfinished has another
name.
"""

from pathlib import Path

from hermes.domain.errors import NotFound
from hermes.domain.records import dataclass

FOLDER = "models"


@dataclass(frozen=True, slots=True)
class Weights:
    """One model in one file, whose bytes have the digest `sha256`."""

    name: str
    title: str
    file: str
    size: int
    sha256: str
    licence: str

    def path(self, home: Path) -> Path:
        """Return where the file is, or would be."""
        return home / FOLDER / self.file

    def is_there(self, home: Path) -> bool:
        """Whether the file is there."""
        try:
            return self.path(home).stat().st_size == self.size
        except OSError:
            return False


QWEN = Weights(
    name="qwen2.5-coder-1.5b",
    title="Qwen2.5-Coder-1.5B-Instruct",
    file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    licence="Apache-2.0",
)
KNOWN = (QWEN,)


def weights(name: str) -> Weights:
    """Return the row of a name, with or without `local/`. Raises NotFound."""
    plain = name.lower().removeprefix("local/")
    found = next((one for one in KNOWN if one.name == plain), None)
    if found is None:
        raise NotFound(f"there are no weights {name!r} to be had; known: {', '.join(one.name for one in KNOWN)}")
    return found
