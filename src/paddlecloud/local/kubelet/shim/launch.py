"""From a forked shim to the program of a container: what happens between fork and exec.

Runs in the child only. It either replaces the process or reports why it could not and exits with the code that
container runtimes use for it. Standard library only: the shim imports this.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
from collections.abc import Callable, Sequence
from typing import NoReturn

from paddlecloud.local.kubelet.shim import cgroups, linux, netguard, private_tmp, seccomp, warmstart
from paddlecloud.local.kubelet.shim.cgroups import CgroupPath
from paddlecloud.local.kubelet.shim.sandbox import TMP, Mount, Sandbox, become_user_in_namespace, build_root
from paddlecloud.local.kubelet.shim.wire import ContainerSpec

START_ERROR = 128
"""Exit code of a container whose program never started, as runc's users know it."""

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class StartError(Exception):
    """The program could not be started; the text is for the container's status."""


def become(
    spec: ContainerSpec,
    sandbox: Sandbox,
    *,
    staging: str,
    report: socket.socket,
    stdio: Sequence[int],
    cgroup: CgroupPath | None = None,
    pids_limit: int = 0,
) -> NoReturn:
    """Turn this child into the container's first process; `report` is called with the reason where that fails."""

    def prepare() -> None:
        os.setsid()
        _take_limits(sandbox, cgroup, pids_limit)
        mounts = _mountable(spec.mounts, sandbox)
        if sandbox.mounts:
            build_root(mounts, staging=staging)
        if spec.bind_ip:
            _hand_over_sockets(sandbox, report)
        _finish(spec, sandbox, stdio)
        if spec.tty:
            _take_terminal()

    env = _environment(spec, sandbox)
    # Looked for now: the machine's /tmp is out of sight when a start fails for it.
    hidden = private_tmp.sentence((spec.argv[0], spec.cwd), spec.mounts) if sandbox.mounts else ""

    def start() -> NoReturn:
        _fork_warm(spec.argv, env)
        _exec(spec.argv, env)

    _run(prepare, start, report_error=lambda text: report.send(text + f"; {hidden}".encode() if hidden else text))


def enter(
    spec: ContainerSpec,
    sandbox: Sandbox,
    *,
    namespace_fd: int | None,
    argv: Sequence[str],
    tty: bool,
    report: socket.socket,
    stdio: Sequence[int],
    cgroup: CgroupPath | None = None,
    pids_limit: int = 0,
) -> NoReturn:
    """Turn this child into one more process beside the container's first (`exec`, hooks, exec probes).

    There is no status to put a failed start into: its text goes to the caller's standard error.
    """

    def prepare() -> None:
        os.setsid()
        _take_limits(sandbox, cgroup, pids_limit)
        if namespace_fd is not None:
            linux.setns(namespace_fd, linux.CLONE_NEWNS)
        if spec.bind_ip:
            _hand_over_sockets(sandbox, report)
        _finish(spec, sandbox, stdio)
        if tty:
            _take_terminal()

    env = _environment(spec, sandbox)
    _run(prepare, lambda: _exec(argv, env), report_error=lambda text: os.write(stdio[2], text + b"\n"))


def _environment(spec: ContainerSpec, sandbox: Sandbox) -> dict[str, str]:
    """What a pod's environment places in /tmp is meant for the container's own.

    Without a mount namespace /tmp is the machine's: any other user could have put a home directory there, with start-up
    files and modules that the program would run, or links in the place of files that it writes.
    """
    own = next((mount.source for mount in spec.mounts if mount.target == TMP), None)
    if sandbox.mounts or own is None:
        return spec.env

    def placed(path: str) -> str:
        return own + path.removeprefix(TMP) if f"{path}/".startswith(f"{TMP}/") else path

    env = {"TMPDIR": TMP, **spec.env}
    return {name: ":".join(map(placed, value.split(":"))) for name, value in env.items()}


def _run(
    prepare: Callable[[], None], become_program: Callable[[], NoReturn], *, report_error: Callable[[bytes], object]
) -> NoReturn:
    try:
        prepare()
        _reset_signals()
        become_program()
    except (OSError, StartError, ValueError) as error:
        try:
            report_error(str(error).encode()[:4000])
        except OSError:
            pass  # the other end is gone: the exit code below is all that remains
    except warmstart.Become:
        raise
    except BaseException:
        os._exit(START_ERROR)
    os._exit(START_ERROR)


GUARD = b"\0"
"""Precedes the descriptor on which the shim answers for the pod's sockets, and only that: error texts have no NUL."""


def _hand_over_sockets(sandbox: Sandbox, report: socket.socket) -> None:
    try:
        listener = netguard.install(privileged=sandbox.mounts or os.getuid() == 0)
    except OSError:
        return  # an old kernel, or one that forbids it: the pod shares ports with the machine then
    socket.send_fds(report, [GUARD], [listener])
    os.close(listener)


COUNTS_BY_NAMESPACE = (5, 14)
"""Since this kernel a user's processes are counted in each user namespace apart; before, all of them together."""


def _take_limits(sandbox: Sandbox, cgroup: CgroupPath | None, pids_limit: int) -> None:
    """What holds for this process and all that it starts, before it starts anything."""
    if cgroup:
        cgroups.join(cgroup)
    if pids_limit and sandbox.mode == "user" and not (cgroup and "pids" in cgroup.dirs):
        _limit_processes(pids_limit)


def _limit_processes(count: int) -> None:
    """A pod in its own user namespace can be held to a number of processes without any cgroup."""
    import resource

    kernel = tuple(int(part) for part in os.uname().release.split(".")[:2])
    _, most = resource.getrlimit(resource.RLIMIT_NPROC)
    if kernel >= COUNTS_BY_NAMESPACE and (most == resource.RLIM_INFINITY or count < most):
        resource.setrlimit(resource.RLIMIT_NPROC, (count, count))


def _mountable(mounts: Sequence[Mount], sandbox: Sandbox) -> list[Mount]:
    if sandbox.mounts:
        for mount in mounts:
            if mount.tmpfs_bytes is None and not os.path.exists(mount.source):
                raise StartError(f"volume for {mount.target}: {mount.source} does not exist")
        return list(mounts)
    needed = [mount.target for mount in mounts if not mount.optional]
    if needed:
        raise StartError(
            f"this machine allows no mount namespaces ({sandbox.reason}), and the container mounts " + ", ".join(needed)
        )
    return []


def _finish(spec: ContainerSpec, sandbox: Sandbox, stdio: Sequence[int]) -> None:
    for target, fd in enumerate(stdio):
        os.dup2(fd, target, inheritable=True)
    try:
        os.chdir(spec.cwd)
    except OSError as error:
        raise StartError(f"working directory {spec.cwd}: {os.strerror(error.errno or 0)}") from error
    os.umask(spec.umask)
    _spare_others(sandbox)
    _take_identity(spec, sandbox)
    if spec.no_new_privileges:
        linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    # Last, because changing identity clears it: the program must not outlive its shim.
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)


def _spare_others(sandbox: Sandbox) -> None:
    """A slip in a pod must not end the platform, other pods and all else that the user runs."""
    try:
        if not (sandbox.mounts or os.getuid() == 0):
            linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
        seccomp.forbid_signals_to_everybody()
    except OSError:
        pass  # a kernel without filters: pods can do what the user can


def _take_identity(spec: ContainerSpec, sandbox: Sandbox) -> None:
    uid = spec.uid or 0
    gid = spec.gid if spec.gid is not None else 0
    if sandbox.mode == "user" and uid == 0:
        try:
            seccomp.forgive_ownership()
        except OSError:
            pass  # a kernel without filters: programs that change the owner of files get an error
    if spec.uid is None and spec.gid is None:
        return
    if sandbox.mode == "user":
        if (uid, gid) != (0, 0):
            become_user_in_namespace(uid, gid)
    elif os.getuid() == 0:
        os.setgroups(spec.groups)
        os.setgid(gid)
        os.setuid(uid)
    elif uid != os.getuid():
        raise StartError(f"runAsUser {uid} needs user namespaces, which this machine refuses: {sandbox.reason}")


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _reset_signals() -> None:
    """Python ignores SIGPIPE and SIGXFSZ; programs expect the default."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _fork_warm(argv: tuple[str, ...], env: dict[str, str]) -> None:
    """Go on as the program without exec, where that makes no difference to it but time; returns where it would."""
    call = warmstart.find(argv, env)
    if call is None:
        return
    try:
        linux.set_command_line(argv, env)
    except OSError:
        return  # a kernel without it: `ps` would show the parent's
    raise warmstart.Become(call)


def _exec(argv: Sequence[str], env: dict[str, str]) -> NoReturn:
    program = argv[0]
    if "/" in program:
        candidates = [program]
    else:
        path = env.get("PATH", DEFAULT_PATH)
        candidates = [os.path.join(folder or ".", program) for folder in path.split(":")]
    refused: OSError | None = None
    for candidate in candidates:
        try:
            os.execve(candidate, list(argv), env)  # noqa: S606 - the one place where programs of pods start
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                refused = error
    if refused is not None:
        raise StartError(f'exec: "{program}": {os.strerror(refused.errno or 0)}')
    where = "no such file or directory" if "/" in program else "executable file not found in $PATH"
    raise StartError(f'exec: "{program}": {where}')
