"""Landlock by bare system calls: a process gives up writing outside some folders, for itself and all it starts.

The kernel's numbers are the same on every processor we know.
"""

import ctypes
import os
import struct
import sys
from collections.abc import Iterable

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_ASK_VERSION = 1
_BENEATH = 1
_NO_NEW_PRIVILEGES = 38
_PER_VERSION = ((1, 0x1FF2), (2, 1 << 13), (3, 1 << 14), (5, 1 << 15))
"""The rights to write, and the version of each: write, remove, make; refer; truncate; ioctl on devices."""
_OF_FILES = 1 << 1 | 1 << 14 | 1 << 15


def version() -> int:
    """Return the version the kernel speaks, 0 when it does not."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(0, _call(_CREATE, None, 0, _ASK_VERSION))


def restrict(writable: Iterable[str]) -> None:
    """Give up writing anywhere but at and below these places; raise OSError when the kernel refuses."""
    known = version()
    rights = sum(bits for since, bits in _PER_VERSION if known >= since)
    ruleset = _checked(_call(_CREATE, struct.pack("<Q", rights), 8, 0))
    try:
        for place in writable:
            handle = os.open(place, os.O_PATH | os.O_CLOEXEC)
            try:
                allowed = rights if os.path.isdir(place) else rights & _OF_FILES  # noqa: PTH112  # no pathlib here
                _checked(_call(_ADD, ruleset, _BENEATH, struct.pack("<Qi", allowed, handle), 0))
            finally:
                os.close(handle)
        _checked(_libc().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
        _checked(_call(_RESTRICT, ruleset, 0))
    finally:
        os.close(ruleset)


def _call(number: int, *arguments: int | bytes | None) -> int:
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return int(_libc().syscall(ctypes.c_long(number), *words))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def main(words: list[str]) -> None:
    """Become a command that can write to some places only: PLACE... -- COMMAND..."""
    places, command = words[: words.index("--")], words[words.index("--") + 1 :]
    restrict(places)
    os.execv(command[0], command)  # noqa: S606  # the words are a list, and no shell is asked


def _checked(answer: int) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return answer


if __name__ == "__main__":
    main(sys.argv[1:])
