"""The chart with its dependencies: what it declares, and which switch brings what.

The charts of other projects are played by small ones of the same names and versions, in a chart repository on loopback;
where the real ones lie is declared in the chart and not visited here.
"""

from __future__ import annotations

import functools
import http.server
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from rendered import CHART, ROOT, helm

CHARTS = ROOT / "charts" / "with-dependencies" / "paddlecloud"
DECLARED: list[dict[str, Any]] = yaml.safe_load((CHARTS / "Chart.yaml").read_text())["dependencies"]
PLAYED = """
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Chart.Name }}}
data: {values: {{ .Values | toJson | quote }}}
"""

Render = Callable[..., dict[str, str]]
"""The values that each dependency was given, as JSON by its name, for the values set."""


def run(*arguments: str, home: Path) -> str:
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([helm(), *arguments], capture_output=True, text=True, timeout=60, check=False, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The chart after `helm dependency build`, in its own home."""
    home = tmp_path_factory.mktemp("helm")
    archives = home / "archives"
    for each in DECLARED:
        chart = home / each["name"]
        (chart / "templates").mkdir(parents=True)
        about = {"apiVersion": "v2", "name": each["name"], "version": each["version"]}
        (chart / "Chart.yaml").write_text(yaml.safe_dump(about))
        (chart / "templates" / "played.yaml").write_text(PLAYED)
        run("package", str(chart), "--destination", str(archives), home=home)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(archives))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        run("repo", "index", str(archives), "--url", url, home=home)
        copy = home / "paddlecloud"
        shutil.copytree(CHARTS, copy)
        text = (copy / "Chart.yaml").read_text()
        (copy / "Chart.yaml").write_text(re.sub(r"repository: \S+", f"repository: {url}", text))
        run("dependency", "build", str(copy), home=home)
        yield copy
        server.shutdown()


@pytest.fixture
def render(built: Path) -> Render:
    def given(*values: str) -> dict[str, str]:
        flags = [word for value in values for word in ("--set", value)]
        shown = run("template", "pdc", str(built), *flags, home=built.parent)
        played = [each for each in yaml.safe_load_all(shown) if each and set(each.get("data") or {}) == {"values"}]
        return {each["metadata"]["name"]: each["data"]["values"] for each in played}

    return given


ALL = {"volcano", "juicefs", "hostpath", "redis", "jupyterhub"}
"""Helm calls a chart by its alias where it has one."""


@pytest.mark.parametrize(
    ("values", "brought"),
    [
        ((), set()),
        (("tags.all-dep=true",), ALL),
        (("juicefs.enabled=true",), {"juicefs"}),
        (("volcano.enabled=true", "hostpath.enabled=true"), {"volcano", "hostpath"}),
        (("tags.all-dep=true", "redis.enabled=false"), ALL - {"redis"}),
        (("redis.enabled=false",), set()),
        (("jupyterhub.enabled=true",), {"jupyterhub"}),
    ],
)
def test_a_switch_brings_what_it_is_called_and_the_tag_brings_all(
    render: Render, values: tuple[str, ...], brought: set[str]
) -> None:
    assert set(render(*values)) == brought


def test_values_below_a_switch_reach_the_chart_of_that_name(render: Render) -> None:
    given = render("tags.all-dep=true", "juicefs.kubeletDir=/data/kubelet", "global.redis.password=secret")
    assert '"kubeletDir":"/data/kubelet"' in given["juicefs"]
    assert '"nodeHostPath":"/mnt/hostpath"' in given["hostpath"]
    assert '"architecture":"standalone"' in given["redis"]
    assert '"password":"secret"' in given["redis"], "global values are for everybody"


@pytest.mark.parametrize(
    ("values", "brought", "missed"),
    [
        ((), set(), set()),
        (("juicefs.enabled=true",), {"juicefs"}, set()),
        (("tags.all-dep=true",), ALL, {"knative", "pipelines"}),
        (("knative.enabled=true", "redis.enabled=true"), {"redis"}, {"knative"}),
        (("tags.all-dep=true", "pipelines.enabled=false", "volcano.enabled=false"), ALL - {"volcano"}, {"knative"}),
    ],
)
def test_the_notes_know_what_came_along_and_what_did_not(
    built: Path, tmp_path: Path, values: tuple[str, ...], brought: set[str], missed: set[str]
) -> None:
    chart = tmp_path / "paddlecloud"
    shutil.copytree(built, chart)
    lists = "".join(f'{name}: {{{{ include "paddlecloud.{name}" . | quote }}}}\n' for name in ("brought", "missed"))
    (chart / "templates" / "listed.yaml").write_text(lists)
    flags = [word for value in values for word in ("--set", value)]
    shown = run("template", "pdc", str(chart), "--show-only", "templates/listed.yaml", *flags, home=built.parent)
    reported = {name: set(yaml.safe_load(text) or {}) for name, text in yaml.safe_load(shown).items()}
    assert reported == {"brought": brought, "missed": missed}


def test_the_rest_of_the_chart_is_the_other_one(built: Path) -> None:
    with_them = yaml.safe_load((CHARTS / "Chart.yaml").read_text())
    del with_them["dependencies"]
    assert with_them == yaml.safe_load((CHART / "Chart.yaml").read_text())
    for path in CHARTS.iterdir():
        if path.name not in ("Chart.yaml", ".helmignore") and not path.name.startswith("README"):
            assert path.resolve() == CHART / path.name
    assert {path.name for path in CHART.iterdir()} <= {path.name for path in CHARTS.iterdir()}
    shown = [run("template", "pdc", str(chart), home=built.parent) for chart in (CHART, built)]
    assert shown[0] == shown[1]


def test_helm_finds_nothing_to_complain_about(built: Path) -> None:
    run("lint", "--strict", str(built), home=built.parent)


def test_engines_are_pinned_to_what_the_tests_run() -> None:
    tested = (ROOT / "tests" / "cluster" / "engines" / "go.mod").read_text()
    pinned = {each["name"]: each["version"] for each in DECLARED}
    assert f"volcano.sh/volcano v{pinned['volcano']}\n" in tested
    assert f"github.com/juicedata/juicefs-csi-driver v{pinned['juicefs-csi-driver']}\n" in tested


def test_every_dependency_has_its_switch_and_the_tag() -> None:
    for each in DECLARED:
        switch = each.get("alias", each["name"])
        assert (each["condition"], each["tags"]) == (f"{switch}.enabled", ["all-dep"])
        assert re.fullmatch(r"\d+\.\d+\.\d+", each["version"]), "one version, not a range"
        for page in ("README.md", "README.zh.md"):
            assert f"| `{switch}` | {each['name']}" in (CHARTS / page).read_text()
            assert f"| {each['version']} |" in (CHARTS / page).read_text()
