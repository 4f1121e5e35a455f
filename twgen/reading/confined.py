"""A separate program that restricts itself with Linux kernel features, then runs another program.

With `confined.py FOLDER PRIVATE PROGRAM ARGUMENT...`, PROGRAM can read FOLDER and read and write PRIVATE, but
cannot open sockets. If the kernel cannot restrict this process, it exits with `CANNOT` and prints the reason
to stderr.
"""

import ctypes
import os
import platform
import resource
import struct
import sys

CANNOT = 125
"""The exit status if the kernel cannot restrict this process."""
_CANNOT_RUN = 126
"""The exit status if the program cannot be run. Shells use the same status."""
MOST_BYTES = 16 * 2**20
"""The maximum size of the output, and of each file that the program writes, in bytes."""
MOST_MEMORY = 768 * 2**20
_MOST_SECONDS = 30
# https://docs.kernel.org/userspace-api/landlock.html
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_EVERYTHING = 2**13 - 1
_PATH_BENEATH = 1
_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2
_SOCKET_CALLS = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""For each architecture, its number in seccomp and the number of its `socket` system call."""
_LOAD, _IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000 | 13, 0x80000000

_kernel = ctypes.CDLL(None, use_errno=True)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def at_most(limit: int, most: int) -> int:
    """`most`, or this process's hard limit if it is lower. `limit` is a constant from Python's `resource`."""
    hard = resource.getrlimit(limit)[1]
    return most if hard == resource.RLIM_INFINITY else min(most, hard)


def _call(name: str, *arguments: object) -> int:
    result = int(getattr(_kernel, name)(*arguments))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _confine_files(folder: str, private: str, program: str) -> None:
    attributes = struct.pack("=Q", _EVERYTHING)
    rules = _call("syscall", _CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    allowed = {
        folder: _READ_FILE | _READ_DIR,
        private: _EVERYTHING & ~_EXECUTE,
        program: _EXECUTE | _READ_FILE,
        "/etc/ld.so.cache": _READ_FILE,
        os.devnull: _READ_FILE | _WRITE_FILE,
        **dict.fromkeys(_LIBRARIES, _EXECUTE | _READ_FILE | _READ_DIR),
    }
    for path, access in allowed.items():
        try:
            handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        rule = struct.pack("=Qi", access, handle)
        _call("syscall", _ADD_RULE, rules, _PATH_BENEATH, rule, 0)
        os.close(handle)
    _call("syscall", _RESTRICT_SELF, rules, 0)
    os.close(rules)


def _confine_network() -> None:
    machine, socket = _SOCKET_CALLS[platform.machine()]
    steps = (
        (_LOAD, 0, 0, 4),
        (_IF_EQUAL, 1, 0, machine),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
        (_IF_EQUAL, 0, 1, socket),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    )
    text = b"".join(struct.pack("=HBBI", *step) for step in steps)
    _call("prctl", _SET_SECCOMP, _FILTER, ctypes.byref(_Program(len(steps), text)), 0, 0)


def main(folder: str, private: str, program: str, *arguments: str) -> None:
    """Restrict this process, then replace it with the program."""
    for limit, most in (
        (resource.RLIMIT_DATA, MOST_MEMORY),
        (resource.RLIMIT_FSIZE, MOST_BYTES),
        (resource.RLIMIT_CPU, _MOST_SECONDS),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (at_most(limit, most),) * 2)
    try:
        _call("prctl", _NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        _confine_files(folder, private, program)
        _confine_network()
    except (OSError, KeyError, AttributeError) as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(CANNOT)
    try:
        os.execv(program, [program, *arguments])  # noqa: S606 - there is no shell
    except OSError as error:
        # the Landlock rules only allow the program itself to run, not a script's interpreter
        why = f"{program} cannot be run here ({error.strerror})"
        sys.stderr.write(f"{why}: if it is a script, put the program itself on PATH\n")
        sys.exit(_CANNOT_RUN)


if __name__ == "__main__":
    main(*sys.argv[1:])
