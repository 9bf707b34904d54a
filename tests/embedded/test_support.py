"""The support table of docs/machine.md, row by row: what works with less than a machine could offer.

Things are taken away for real, from the platform and what it starts alone (tests/tools/deprived.py): root's identity,
user namespaces, capabilities, /dev/fuse. Each test is named in the table; a test checks that.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness import Completed, need, until
from paddlecloud.cli.commands import doctor
from paddlecloud.kube import config
from paddlecloud.kube.client import Client
from paddlecloud.kube.resource import PODS, SERVICES, Object
from paddlecloud.kube.stdlib import StdlibTransport, drive
from paddlecloud.local import lowports
from paddlecloud.platform import endpoint

pytestmark = pytest.mark.timeout(300)  # a row is a platform and a dozen commands and pods, one after the other

ROOT = Path(__file__).parents[2]
DEPRIVED = ROOT / "tests" / "tools" / "deprived.py"
KUBECTL_LIST = ROOT / "tests" / "embedded" / "test_kubectl_machine.py"
NOBODY = 65534
HOST = os.uname().nodename
LOW_PORTS = int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text())
KERNEL = tuple(int(part) for part in os.uname().release.split(".")[:2])


class Lesser:
    """Runs pdc, and with it a platform, with less."""

    def __init__(self, folder: Path, python: str, *, uid: int, without: str = "") -> None:
        self.folder = folder
        self.data = folder / "data"
        self.client: Client
        self._python = python
        self._prefix = [sys.executable, str(DEPRIVED), "--uid", str(uid), "--without", without, "--"]
        self.env = {
            "HOME": str(folder),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "PYTHONPATH": f"{ROOT / 'src'}:{sysconfig.get_path('purelib')}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "KUBECONFIG": str(self.data / "kubeconfig"),
        }

    def python(self, *args: str, cwd: Path = Path("/"), timeout: float = 280, **options: Any) -> Completed:
        return subprocess.run(
            [*self._prefix, self._python, *args],
            capture_output=True, text=True, env=self.env, timeout=timeout, cwd=cwd, **options,
        )  # fmt: skip

    def pdc(self, *args: str, check: bool = True, input: str | None = None) -> Completed:
        done = self.python("-m", "paddlecloud.cli.main", *args, input=input, timeout=90)
        assert not check or done.returncode == 0, f"pdc {' '.join(args)}\n{done.stdout}\n{done.stderr}"
        return done

    def up(self) -> None:
        self.pdc("up", "--data", str(self.data), "--port", "0")
        self.client = Client(StdlibTransport(config.load(kubeconfig=str(self.data / "kubeconfig"))))

    def apply(self, name: str, script: str, *, container: Object | None = None, **spec: Any) -> None:
        main = {"name": "main", "image": "busybox", "command": ["sh", "-c", script], **(container or {})}
        body = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [main], **spec}
        drive(self.client.create(PODS, {"metadata": {"name": name}, "spec": body}, namespace="default"))

    def status(self, name: str) -> Object:
        return drive(self.client.get(PODS, name, "default")).get("status") or {}

    def ended(self, name: str) -> Object:
        """How the pod's container ended."""
        until(lambda: self.status(name).get("phase") in ("Succeeded", "Failed"))
        ended: Object = self.status(name)["containerStatuses"][0]["state"]["terminated"]
        return ended

    def output(self, name: str, script: str, **fields: Any) -> str:
        """What a pod prints, from its start to its end."""
        self.apply(name, script, **fields)
        ended = self.ended(name)
        assert ended["exitCode"] == 0, ended
        return drive(self.client.raw("GET", PODS.path("default", name, "log"))).body.decode()

    def findings(self) -> dict[str, Object]:
        report = json.loads(self.pdc("doctor", "-o", "json", "--data", str(self.data), check=False).stdout)
        return {check["name"]: check for check in report["checks"]}


def python_for_others() -> str:
    """An interpreter of this version that another user may run, with the packages of this one."""
    minor = f"{sys.version_info[0]}.{sys.version_info[1]}"
    for candidate in (os.path.realpath(sys.executable), f"/usr/bin/python{minor}", f"/usr/local/bin/python{minor}"):
        probe = [sys.executable, str(DEPRIVED), "--uid", str(NOBODY), "--", candidate, "-c", "import aiohttp, msgspec"]
        env = {"PYTHONPATH": sysconfig.get_path("purelib"), "PATH": os.defpath, "PYTHONDONTWRITEBYTECODE": "1"}
        with contextlib.suppress(OSError):
            if subprocess.run(probe, env=env, capture_output=True, timeout=30, cwd="/").returncode == 0:
                return candidate
    return ""


Make = Callable[..., Lesser]


@pytest.fixture
def lesser() -> Iterator[Make]:
    need("root", have=os.geteuid() == 0, hint="only root can take things away; run the tests as root")
    python = python_for_others()
    need("a Python for all users", have=bool(python), hint="install python3 with your distribution's packages")
    made: list[Lesser] = []

    def make(*, uid: int = NOBODY, without: str = "") -> Lesser:
        folder = Path(tempfile.mkdtemp(prefix="pdc-lesser-", dir="/tmp"))
        os.chown(folder, uid, uid)
        made.append(Lesser(folder, python, uid=uid, without=without))
        return made[-1]

    yield make
    for platform in made:
        if platform.data.exists():
            platform.pdc("down", "--data", str(platform.data))
            assert "Traceback" not in (platform.data / "platform.log").read_text()
        shutil.rmtree(platform.folder)


def pod_life(platform: Lesser) -> None:
    """What works on every Linux machine: running, logs, exec, exit codes, memory limits, restarts, a dead daemon."""
    assert platform.output("hello", "echo hello from $HOSTNAME") == "hello from hello\n"
    platform.apply("stay", "echo up; exec sleep 600", restartPolicy="Always")
    until(lambda: platform.status("stay").get("phase") == "Running")
    assert platform.pdc("exec", "stay", "--", "echo", "inside").stdout == "inside\n"
    hungry = {"resources": {"limits": {"memory": "40Mi"}}}
    platform.apply("hungry", 'exec python3 -c "a = bytearray(200 << 20); input()"', container={**hungry, "stdin": True})
    assert (platform.ended("hungry")["exitCode"], platform.ended("hungry")["reason"]) == (137, "OOMKilled")
    daemon = endpoint.find(platform.data)
    assert daemon is not None
    os.kill(daemon.pid, signal.SIGKILL)
    until(lambda: not Path(f"/proc/{daemon.pid}").exists())
    platform.up()
    assert platform.pdc("exec", "stay", "--", "echo", "still").stdout == "still\n"
    assert platform.status("stay")["containerStatuses"][0]["restartCount"] == 0


def ready(status: Object) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or ())


EMPTY = {"volumes": [{"name": "v", "emptyDir": {}}]}
MOUNTED = {"volumeMounts": [{"name": "v", "mountPath": "/data/of/mine"}]}
SHARED_FILES = "pods share the host's file system"


def test_an_ordinary_user_with_user_namespaces_lacks_nothing(lesser: Make) -> None:
    platform = lesser()
    platform.up()
    pod_life(platform)
    script = "echo kept > /data/of/mine/file; cat /data/of/mine/file; id -u; getent hosts kubernetes.default.svc"
    lines = platform.output("volume", script, container=MOUNTED, **EMPTY).splitlines()
    assert lines[:2] == ["kept", "0"], "the user is root in its own namespace, as in most images"
    assert re.match(r"127\.", lines[2])
    assert platform.output("other", "id -u", securityContext={"runAsUser": 1234}) == "1234\n"
    serves = {"readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1}}
    for name in ("one", "two"):
        platform.apply(name, "exec python3 -m http.server 8080", container=serves)
    until(lambda: all(ready(platform.status(name)) for name in ("one", "two")))
    found = platform.findings()
    assert {found[name]["status"] for name in ("user namespaces", "mount namespace")} == {"ok"}
    if KERNEL >= (5, 14):
        check_number_of_processes(platform)


WEB = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: nginx
    image: nginx
    command: [python3, -m, http.server, "80"]
    readinessProbe: {httpGet: {port: 80}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{port: 80}]
"""
LOOK = """
import urllib.request
for host in ("web", "web.default.svc.cluster.local:80"):
    print(urllib.request.urlopen(f"http://{host}/", timeout=5).status)
"""


@pytest.mark.parametrize("without", ["", "user-namespaces"])
def test_low_ports_of_pods_and_services_work_for_an_ordinary_user(lesser: Make, without: str) -> None:
    need("low ports of root's", have=LOW_PORTS > 80, hint="sysctl net.ipv4.ip_unprivileged_port_start says all may")
    platform = lesser(without=without)
    platform.up()
    platform.pdc("apply", "-f", "-", input=WEB)
    until(lambda: ready(platform.status("web")))
    service = drive(platform.client.get(SERVICES, "web", "default"))
    if without:  # and so without names
        look = LOOK.replace('"web", "web.default.svc.cluster.local:80"', f'"{service["spec"]["clusterIP"]}",')
    else:
        look = LOOK
    seen = platform.output("client", "", container={"command": ["python3", "-c", look]})
    assert set(seen.split()) == {"200"}
    until(lambda: "PortMoved" in platform.pdc("events", "--for", "service/web").stdout)
    outside = f"http://{service['spec']['clusterIP']}:{80 + lowports.SHIFT}/"
    assert urllib.request.urlopen(outside, timeout=10).status == 200
    found = platform.findings()["low ports"]
    assert (found["status"], found["fix"]) == ("warn", lowports.FIX)
    assert str(80 + lowports.SHIFT) in found["meaning"]


@pytest.mark.timeout(900)  # a whole file of tests, each of which has its own limit
def test_what_kubectl_does_it_does_for_an_ordinary_user(lesser: Make) -> None:
    """The whole list, run again by another user: run, rollout, logs, exec, cp, port-forward, top, drain and so on."""
    kubectl = shutil.which("kubectl")
    need("kubectl", have=kubectl is not None, hint="make test builds one")
    platform = lesser()
    tools = platform.folder / "bin"
    tools.mkdir()
    shutil.copy(str(kubectl), tools)  # where it lies may be closed to others
    platform.env |= {"PATH": f"{tools}:{platform.env['PATH']}", "PDC_REQUIRE": "kubectl"}
    done = platform.python(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={platform.folder / 'tests'}", str(KUBECTL_LIST),
        cwd=ROOT, timeout=880,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert re.search(r"^\d{2,} passed in", done.stdout, re.MULTILINE), done.stdout[-1000:]


def check_number_of_processes(platform: Lesser) -> None:
    """Without any cgroup: since Linux 5.14 the kernel counts the processes of a user in each namespace apart."""
    assert re.search(r"Max processes +4096 +4096", platform.output("limit", "cat /proc/self/limits"))
    bomb = "import os, resource, time; resource.setrlimit(resource.RLIMIT_NPROC, (30, 30)); print('set', flush=True)\n"
    bomb += "for _ in range(60):\n  if os.fork() == 0: time.sleep(60)"
    platform.apply("bomb", "", container={"command": ["python3", "-c", bomb]})
    assert platform.ended("bomb")["exitCode"] == 1


def test_an_ordinary_user_without_user_namespaces_runs_pods_without_volumes(lesser: Make) -> None:
    platform = lesser(without="user-namespaces")
    platform.up()
    pod_life(platform)
    platform.apply("volume", "true", container=MOUNTED, **EMPTY)
    ended = platform.ended("volume")
    assert (ended["reason"], ended["exitCode"]) == ("StartError", 128)
    assert "allows no mount namespaces" in ended["message"]
    assert "/data/of/mine" in ended["message"]
    assert "sudo sysctl -w user.max_user_namespaces" in ended["message"], "the command that would help"
    reported = platform.pdc("events", "--for", "pod/hello").stdout
    assert "SandboxDegraded" in reported
    script = "hostname; echo $HOSTNAME; cat /var/run/secrets/kubernetes.io/serviceaccount/token || echo no token"
    assert platform.output("bare", f"{{ {script}; }} 2>/dev/null").splitlines() == [HOST, "bare", "no token"]
    found = platform.findings()
    for name in ("user namespaces", "mount namespace"):
        assert found[name]["status"] == "warn"
        assert found[name]["meaning"].startswith(SHARED_FILES)
        assert found[name]["fix"].startswith("sudo sysctl -w user.max_user_namespaces=")


def test_root_without_capabilities_as_in_a_container_runs_pods_without_volumes(lesser: Make) -> None:
    platform = lesser(uid=0, without="user-namespaces,capabilities")
    platform.up()
    assert platform.output("hello", "echo hello") == "hello\n"
    platform.apply("volume", "true", container=MOUNTED, **EMPTY)
    assert "allows no mount namespaces" in platform.ended("volume")["message"]
    assert platform.findings()["mount namespace"]["meaning"].startswith(SHARED_FILES)


@pytest.mark.parametrize(
    ("uid", "without", "state", "fix"),
    [
        (0, "fuse", "no /dev/fuse", "sudo modprobe fuse"),
        (NOBODY, "fuse", "no /dev/fuse", "sudo modprobe fuse"),
    ],
    ids=["root", "user"],
)
def test_without_fuse_only_juicefs_volumes_are_missed(
    lesser: Make, uid: int, without: str, state: str, fix: str
) -> None:
    found = lesser(uid=uid, without=without).findings()["fuse"]
    assert (found["status"], found["detail"], found["fix"]) == ("warn", state, fix)
    assert found["meaning"] == "JuiceFS volumes cannot be mounted; directory caches still work"


def test_without_kubectl_and_uv_the_platform_does_its_own_work(lesser: Make) -> None:
    platform = lesser()
    tools = platform.folder / "bin"
    tools.mkdir()
    for name in ("sh", "sleep", "cat", "id", "python3"):
        (tools / name).symlink_to(str(shutil.which(name, path="/usr/bin:/bin")))
    platform.env["PATH"] = str(tools)
    platform.up()
    assert platform.output("hello", "echo hello") == "hello\n"
    found = platform.findings()
    fixes = {name: found[name]["fix"] for name in ("kubectl", "uv")}
    assert fixes == {"kubectl": "sudo snap install kubectl --classic", "uv": "pip install uv"}


# macOS and Windows


def test_elsewhere_than_on_linux_pdc_is_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    class Darwin:
        sysname, release, machine = "Darwin", "24.0", "arm64"

    monkeypatch.setattr(os, "uname", Darwin)
    finding = doctor._kernel(None)  # type: ignore[arg-type]
    assert (finding.status, finding.detail) == ("warn", "Darwin 24.0 arm64")
    assert "only client commands" in finding.meaning
    assert "WSL2" in finding.fix


LINUX_ONLY = ("fcntl", "grp", "pwd", "resource", "termios", "tty", "pty")


@pytest.mark.parametrize(
    "command",
    [["version", "--client"], ["get", "pods"], ["logs", "x"], ["apply", "--help"], ["exec", "--help"], ["crds"]],
    ids=lambda command: command[0],
)
def test_the_client_imports_nothing_that_windows_lacks(command: Sequence[str], tmp_path: Path) -> None:
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({LINUX_ONLY!r}))\n"
        f"from paddlecloud.cli.main import main; sys.argv = ['pdc', *{list(command)!r}]; main()"
    )
    env = {**os.environ, "KUBECONFIG": str(tmp_path / "none"), "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env, timeout=60)
    assert "ModuleNotFoundError" not in done.stderr, done.stderr
    assert "Traceback" not in done.stderr, done.stderr


# The tables themselves


TABLES = [("What works where", "什么条件下能用什么", 9), ("What it withstands", "经得起什么", 10)]


def rows_of(page: str, title: str) -> list[list[str]]:
    text = (ROOT / "docs" / page).read_text()
    section = text.partition(f"## {title}\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    return [re.findall(r"`(test_\w+)`", row) for row in rows]


@pytest.mark.parametrize(("title", "chinese", "least"), TABLES)
def test_every_row_of_the_tables_names_a_test_that_exists(title: str, chinese: str, least: int) -> None:
    named = rows_of("machine.md", title)
    assert len(named) >= least
    assert rows_of("machine.zh.md", chinese) == named, "the Chinese page has the same rows"
    assert all(named), "a row without a test"
    sources = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    missing = [name for names in named for name in names if f"def {name}(" not in sources]
    assert missing == []
