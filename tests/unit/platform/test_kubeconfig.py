"""The user's current context: ours while the platform runs, the former one afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from paddlecloud.local.privatefiles import write_private
from paddlecloud.platform import kubeconfig

OURS = kubeconfig.content(url="https://127.0.0.1:6443", ca="Y2E=", token="t")


def other(name: str = "prod") -> dict[str, Any]:
    return kubeconfig.content(url="https://prod:6443", ca="eA==", token="t", context=name)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    write_private(kubeconfig.own_file(tmp_path / "data"), yaml.safe_dump(OURS).encode())
    return tmp_path / "data"


def current(path: Path) -> str:
    return str(yaml.safe_load(path.read_text())["current-context"])


def test_the_former_context_is_current_again_when_the_platform_is_down(tmp_path: Path, data: Path) -> None:
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(other()))
    former = kubeconfig.merge_into(path, OURS)
    assert (former, current(path)) == ("prod", kubeconfig.CONTEXT)
    kubeconfig.remember_former(data, path, former)
    assert kubeconfig.merge_into(path, OURS) == "", "the second start changes nothing"
    assert kubeconfig.restore_former(data) == (path, "prod")
    assert current(path) == "prod"
    assert kubeconfig.restore_former(data) is None, "once"


@pytest.mark.parametrize("change", ["another is current", "of another platform", "former is gone", "no file"])
def test_a_context_that_is_no_longer_ours_is_left_alone(tmp_path: Path, data: Path, change: str) -> None:
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(other()))
    kubeconfig.remember_former(data, path, kubeconfig.merge_into(path, OURS))
    content = yaml.safe_load(path.read_text())
    if change == "another is current":
        content["current-context"] = "mine"
    elif change == "of another platform":
        content["clusters"][-1]["cluster"]["certificate-authority-data"] = "b3RoZXI="
    elif change == "former is gone":
        content["contexts"] = [one for one in content["contexts"] if one["name"] != "prod"]
    path.write_text(yaml.safe_dump(content))
    if change == "no file":
        path.unlink()
    assert kubeconfig.restore_former(data) is None
    assert not path.exists() or yaml.safe_load(path.read_text()) == content
