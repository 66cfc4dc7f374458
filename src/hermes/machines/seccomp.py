"""The list of system calls that a sandboxed command may not make, compiled to the kernel's filter language.

Invariant: what the filter cannot see (another architecture, flags that lie in memory) is refused, not let through.
"""

import errno
import os
import platform
import struct
from collections.abc import Sequence

from hermes.domain.records import dataclass
from hermes.machines.syscalls import CLONE, CLONE3, FORBIDDEN, IOCTL, NUMBERS, SOCKET

_LOAD, _JUMP_EQUAL, _JUMP_ABOVE, _JUMP_BITS, _RETURN, _AND = 0x20, 0x15, 0x25, 0x45, 0x06, 0x54
_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT = 0, 4, 16
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000
"""The second set of calls on x86_64 begins here; nobody uses it."""
_NAMESPACES = 0x7E020000
"""Every CLONE_NEW flag that clone knows: mount, cgroup, uts, ipc, user, pid, net."""
_FAMILIES = (1, 2, 10, 16)
"""Unix, IPv4, IPv6, netlink. The rest (raw packets, the hypervisor's, the kernel's ciphers) ignore network namespaces
or are a wide door into the kernel.
"""
_TERMINAL_ORDERS = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX: typing into a terminal as if a person did."""


@dataclass(frozen=True, slots=True)
class _Step:
    code: int
    value: int
    if_true: int = 0
    if_false: int = 0

    def pack(self) -> bytes:
        return struct.pack("<HBBI", self.code, self.if_true, self.if_false, self.value)


def filter_for(machine: str | None = None) -> bytes | None:
    """Return the filter for this kind of processor as bytes, or None when we have no list of its calls."""
    machine = machine or platform.machine()
    if machine not in _MACHINES:
        return None
    numbers = NUMBERS[machine]
    steps = [
        _Step(_LOAD, _MACHINE_AT),
        _Step(_JUMP_EQUAL, _MACHINES[machine], if_true=1),
        _Step(_RETURN, _KILL),
        _Step(_LOAD, _NUMBER_AT),
        _Step(_JUMP_ABOVE, _X32 - 1, if_false=1),
        _Step(_RETURN, _refuse(errno.ENOSYS)),
    ]
    steps += _when(numbers[CLONE3], [_Step(_RETURN, _refuse(errno.ENOSYS))])
    steps += _when(numbers[CLONE], _if_bits(_NAMESPACES))
    steps += _when(numbers[SOCKET], _unless_one_of(0, _FAMILIES, errno.EAFNOSUPPORT))
    steps += _when(numbers[IOCTL], _if_one_of(1, _TERMINAL_ORDERS))
    for name in FORBIDDEN:
        if name in numbers:
            steps += _when(numbers[name], [_Step(_RETURN, _refuse(errno.EPERM))])
    steps.append(_Step(_RETURN, _ALLOW))
    return b"".join(step.pack() for step in steps)


def _refuse(number: int) -> int:
    return _ERRNO | number


def _when(number: int, body: Sequence[_Step]) -> list[_Step]:
    """Run `body`, which returns, for one call; the number is loaded before and stays so for the next test."""
    return [_Step(_JUMP_EQUAL, number, if_false=len(body)), *body]


def _argument(index: int) -> _Step:
    # Only the low half: these arguments are ints, and the kernel drops the rest too.
    return _Step(_LOAD, _ARGUMENTS_AT + 8 * index)


def _if_bits(bits: int) -> list[_Step]:
    return [
        _argument(0),
        _Step(_JUMP_BITS, bits, if_false=1),
        _Step(_RETURN, _refuse(errno.EPERM)),
        _Step(_RETURN, _ALLOW),
    ]


def _if_one_of(index: int, values: Sequence[int]) -> list[_Step]:
    tests = [_Step(_JUMP_EQUAL, v, if_true=len(values) - place) for place, v in enumerate(values)]
    return [_argument(index), *tests, _Step(_RETURN, _ALLOW), _Step(_RETURN, _refuse(errno.EPERM))]


def _unless_one_of(index: int, values: Sequence[int], number: int) -> list[_Step]:
    tests = [_Step(_JUMP_EQUAL, v, if_true=len(values) - place) for place, v in enumerate(values)]
    return [_argument(index), *tests, _Step(_RETURN, _refuse(number)), _Step(_RETURN, _ALLOW)]


def as_descriptor(filtered: bytes) -> int:
    """Return a descriptor that bubblewrap reads the filter from; the caller closes it."""
    reading, writing = os.pipe()
    try:
        # It fits into the pipe, so this does not wait for a reader.
        os.write(writing, filtered)
    finally:
        os.close(writing)
    return reading
