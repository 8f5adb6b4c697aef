"""Landlock, seccomp and rlimits by ctypes: a process gives up for good what a checkpoint function never needs.

Sources: Linux's include/uapi/linux/{landlock,seccomp,filter,audit}.h and arch/x86/entry/syscalls/syscall_64.tbl.
Only x86-64 is supported; elsewhere `available()` says so.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import struct
from collections.abc import Sequence
from pathlib import Path

#: What Python needs to compute: memory, time, reading what is open or allowed, ending itself. Everything else is
#: refused with EPERM: no socket, no fork or thread, no exec, no signal to anyone, no ptrace, no change of any limit.
#: Not fcntl: F_SETOWN and F_SETSIG on a pipe send any signal to any process of the user.
_ALLOWED: dict[str, int] = {
    "read": 0, "write": 1, "open": 2, "close": 3, "stat": 4, "fstat": 5, "lstat": 6, "poll": 7, "lseek": 8, "mmap": 9,
    "mprotect": 10, "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15,
    "pread64": 17, "readv": 19, "writev": 20, "sched_yield": 24, "mremap": 25, "mincore": 27, "madvise": 28,
    "nanosleep": 35, "getpid": 39, "exit": 60, "uname": 63, "getcwd": 79, "readlink": 89,
    "gettimeofday": 96, "getrusage": 98, "times": 100, "getuid": 102, "getgid": 104, "geteuid": 107, "getegid": 108,
    "sigaltstack": 131, "gettid": 186, "time": 201, "futex": 202, "sched_getaffinity": 204, "getdents64": 217,
    "clock_gettime": 228, "clock_getres": 229, "clock_nanosleep": 230, "exit_group": 231, "openat": 257,
    "newfstatat": 262, "readlinkat": 267, "set_robust_list": 273, "getrandom": 318, "membarrier": 324, "statx": 332,
    "rseq": 334,
}  # fmt: skip

_AUDIT_ARCH_X86_64 = 0xC000003E
_X32_BIT = 0x40000000
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _PR_SET_DUMPABLE, _PR_SET_PDEATHSIG = 38, 22, 4, 1
_SECCOMP_FILTER = 2
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000 | 1, 0x80000000  # refuse = errno EPERM
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH = 1
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
#: How many file rights each Landlock ABI knows.
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_libc = ctypes.CDLL(None, use_errno=True)


class Refused(OSError):
    """The kernel did not do what was asked; the process must not go on."""


def available() -> str:
    """ "" where this kernel can hold task code, else what is missing."""
    if platform.system() != "Linux" or platform.machine() != "x86_64" or struct.calcsize("P") != 8:
        return f"the sandbox needs 64-bit Linux on x86-64; this is {platform.system()} on {platform.machine()}"
    if landlock_abi() < 1:
        return "this kernel has no Landlock"
    return ""


def landlock_abi() -> int:
    """The kernel's Landlock ABI, 0 where it has none or it is off."""
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1))))


def limit(*, cpu_seconds: int, memory_bytes: int) -> None:
    """Bound this process: CPU time, address space beyond what it has now, no files, no core, no processes."""
    with Path("/proc/self/statm").open(encoding="ascii") as handle:
        used = int(handle.read().split()[0]) * resource.getpagesize()
    for what, value in (
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_AS, used + memory_bytes),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_NOFILE, 64),
    ):
        resource.setrlimit(what, (value, value))


def end_with_parent() -> None:
    """Have the kernel kill this process when the one that forked it ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0)


def lock_down(readable: Sequence[Path]) -> None:
    """Give up files but for reading below `readable`, network, processes and every other system call not listed.

    Cannot be undone. Raises Refused where the kernel does not comply.
    """
    # Not dumpable: nothing else of this user can look into the process.
    _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise Refused(ctypes.get_errno(), "no_new_privs")
    _landlock(readable)
    _seccomp()


def _landlock(readable: Sequence[Path]) -> None:
    abi = landlock_abi()
    files = (1 << _FILE_RIGHTS.get(abi, 16)) - 1
    network = 0b11 if abi >= 4 else 0
    scopes = 0b11 if abi >= 6 else 0
    attributes = struct.pack("<QQQ", files, network, scopes)[: 24 if abi >= 6 else 16 if abi >= 4 else 8]
    ruleset = _libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    if ruleset < 0:
        raise Refused(ctypes.get_errno(), "landlock_create_ruleset")
    try:
        for path in readable:
            try:
                descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            try:
                rule = struct.pack("<Qi", _READ_FILE | _READ_DIR, descriptor)
                if _libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, ctypes.c_uint32(0)) != 0:
                    raise Refused(ctypes.get_errno(), "landlock_add_rule")
            finally:
                os.close(descriptor)
        if _libc.syscall(_RESTRICT_SELF, ruleset, ctypes.c_uint32(0)) != 0:
            raise Refused(ctypes.get_errno(), "landlock_restrict_self")
    finally:
        os.close(ruleset)


def _seccomp() -> None:
    def statement(code: int, k: int, jump_true: int = 0, jump_false: int = 0) -> bytes:
        return struct.pack("<HBBI", code, jump_true, jump_false, k)

    load, equal, at_least, give = 0x20, 0x15, 0x35, 0x06
    numbers = sorted(_ALLOWED.values())
    program = [
        statement(load, 4),
        statement(equal, _AUDIT_ARCH_X86_64, 1, 0),
        statement(give, _KILL),
        statement(load, 0),
        # The x32 calls share numbers with a bit set; a list of plain numbers would miss them.
        statement(at_least, _X32_BIT, len(numbers), 0),
        *(statement(equal, number, len(numbers) - place, 0) for place, number in enumerate(numbers)),
        statement(give, _REFUSE),
        statement(give, _ALLOW),
    ]
    filters = b"".join(program)
    buffer = ctypes.create_string_buffer(filters, len(filters))
    fprog = struct.pack("<HxxxxxxQ", len(program), ctypes.addressof(buffer))
    if _libc.prctl(_PR_SET_SECCOMP, _SECCOMP_FILTER, fprog, 0, 0) != 0:
        raise Refused(ctypes.get_errno(), "seccomp")
