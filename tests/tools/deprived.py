"""Run a command with less than this machine has: another user, no user namespaces, no /dev/fuse. Needs root.

    python deprived.py [--uid N] [--without user-namespaces,capabilities,fuse] -- COMMAND …

Everything is taken away from the command and what it starts alone: a user namespace in which the number of further
ones is zero, an emptied bounding set, a mount namespace with another /dev. The machine itself is not changed.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import sys

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
PR_CAPBSET_DROP = 24
DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm")

libc = ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments: object) -> None:
    if getattr(libc, name)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")


def lose_user_namespaces() -> None:
    """Go on in a child whose user namespace allows none below it; its parent, still root outside, writes its maps."""
    ready, mapped = os.pipe(), os.pipe()
    child = os.fork()
    if child:
        os.read(ready[0], 1)
        for kind in ("uid", "gid"):
            with open(f"/proc/{child}/{kind}_map", "w") as handle:
                handle.write("0 0 4294967295")
        os.write(mapped[1], b".")
        os.close(mapped[1])
        os.close(ready[0])
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    call("unshare", CLONE_NEWUSER)
    os.write(ready[1], b".")
    os.read(mapped[0], 1)
    for fd in (*ready, *mapped):
        os.close(fd)
    with open("/proc/sys/user/max_user_namespaces", "w") as handle:
        handle.write("0")


def lose_fuse() -> None:
    call("unshare", CLONE_NEWNS)
    call("mount", None, b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None)
    call("mount", b"/dev", b"/mnt", None, ctypes.c_ulong(MS_BIND | MS_REC), None)
    call("mount", b"tmpfs", b"/dev", b"tmpfs", ctypes.c_ulong(0), None)
    for name in DEVICES:
        source, target = f"/mnt/{name}", f"/dev/{name}"
        if os.path.isdir(source):
            os.mkdir(target)
        elif os.path.exists(source):
            os.close(os.open(target, os.O_CREAT))
        else:
            continue
        call("mount", source.encode(), target.encode(), None, ctypes.c_ulong(MS_BIND | MS_REC), None)
    os.symlink("/proc/self/fd", "/dev/fd")


def lose_capabilities() -> None:
    with open("/proc/sys/kernel/cap_last_cap") as handle:
        last = int(handle.read())
    for capability in range(last + 1):
        call("prctl", PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0)


def main() -> None:
    split = sys.argv.index("--")
    parser = argparse.ArgumentParser()
    parser.add_argument("--uid", type=int, default=0)
    parser.add_argument("--without", default="")
    args = parser.parse_args(sys.argv[1:split])
    without = set(filter(None, args.without.split(",")))
    if "fuse" in without:
        lose_fuse()
    if "user-namespaces" in without:
        lose_user_namespaces()
    if "capabilities" in without:
        lose_capabilities()
    if args.uid:
        os.setgroups([])
        os.setgid(args.uid)
        os.setuid(args.uid)
    command = sys.argv[split + 1 :]
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
