"""The numbers of system calls on the processors we know, and those that are refused in the sandbox."""

from collections.abc import Mapping

CLONE, CLONE3, SOCKET, IOCTL = "clone", "clone3", "socket", "ioctl"

_BOTH: Mapping[str, tuple[int | None, int | None]] = {
    # name: x86_64, aarch64
    "clone": (56, 220),
    "clone3": (435, 435),
    "socket": (41, 198),
    "ioctl": (16, 29),
    # Other processes.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    # Keys of the kernel, programs in the kernel, its counters.
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    # Doors that held many holes.
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "memfd_secret": (447, 447),
    "modify_ldt": (154, None),
    # What is mounted, and namespaces.
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "setns": (308, 268),
    # Files by handle, past every path.
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "fanotify_init": (300, 262),
    "lookup_dcookie": (212, 18),
    # The machine as a whole.
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "syslog": (103, 116),
    "iopl": (172, None),
    "ioperm": (173, None),
    "nfsservctl": (180, 42),
    "vhangup": (153, 58),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
}

NUMBERS: Mapping[str, Mapping[str, int]] = {
    "x86_64": {name: first for name, (first, _) in _BOTH.items() if first is not None},
    "aarch64": {name: second for name, (_, second) in _BOTH.items() if second is not None},
}

FORBIDDEN = tuple(name for name in _BOTH if name not in {CLONE, CLONE3, SOCKET, IOCTL})
"""Refused with EPERM whatever their arguments are."""
