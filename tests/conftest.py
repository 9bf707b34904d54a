"""Fixtures shared by all tests: a running embedded platform, real kubectl, and what the machine must have.

`PDC_REQUIRE` names what must be there (root, fuse, kubectl, helm, cluster): a test skipped for a required thing fails.
`PDC_KUBECONFIG` points the conformance suite at another API server than the embedded one.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import Completed, Kubectl, Target, need, pdc
from tools import kubectl as tool


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "soak: long versions of tests; run by `make soak` only")
    config.addinivalue_line("markers", "paddle: trains with real Paddle; builds its environment on first use")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not os.environ.get("PDC_SOAK"):
        items[:] = [item for item in items if item.get_closest_marker("soak") is None]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build kubectl before the first test begins, whose time limit would not allow for it."""
    wanted = any("kubectl_binary" in getattr(item, "fixturenames", ()) for item in session.items)
    if not wanted or session.config.option.collectonly or tool.find() or not tool.can_build():
        return
    print(f"building kubectl {tool.KUBERNETES}; this takes minutes, once")
    try:
        tool.find_or_build()
    except tool.BuildError as error:
        print(f"not built: {error}")


@pytest.fixture(scope="session")
def platform_data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A platform of the test session's own, started and stopped by pdc."""
    data = tmp_path_factory.mktemp("platform")
    pdc("up", "--data", str(data), "--port", "0", "--kubeconfig", str(data / "session.kubeconfig"))
    yield data
    log = (data / "platform.log").read_text()
    pdc("down", "--data", str(data))
    assert "Traceback" not in log, f"the platform's log has a traceback:\n{log[-4000:]}"


@pytest.fixture(scope="session")
def platform(platform_data: Path) -> Target:
    return Target(platform_data / "kubeconfig", embedded=True)


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Target:
    """The API server that conformance is judged on: the embedded one unless PDC_KUBECONFIG names another."""
    other = os.environ.get("PDC_KUBECONFIG")
    if other:
        return Target(Path(other), embedded=False)
    return request.getfixturevalue("platform")  # type: ignore[no-any-return]


@pytest.fixture(scope="session")
def kubectl_binary() -> str:
    """The one on PATH, else the one built from source."""
    found = tool.find()
    need("kubectl", have=found is not None, hint="put kubectl on PATH, or Go to build it")
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


_numbers = itertools.count(1)


@pytest.fixture
def namespace(server: Target, kubectl_binary: str) -> Iterator[str]:
    """A fresh namespace, deleted without waiting afterwards."""
    name = f"t-{os.getpid()}-{next(_numbers)}"
    base = [kubectl_binary, "--kubeconfig", str(server.kubeconfig)]
    manifest = json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    subprocess.run([*base, "create", "-f", "-"], input=manifest, text=True, check=True, capture_output=True, timeout=30)
    yield name
    subprocess.run([*base, "delete", "namespace", name, "--wait=false"], capture_output=True, check=True, timeout=30)
