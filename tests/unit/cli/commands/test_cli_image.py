"""`pdc image`: real recipes and real builds, with a cache and its own data directory."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from unit.cli.conftest import Pdc, write_kubeconfig
from unit.cli.stub import Stub


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PADDLECLOUD_HOME", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """A folder with a recipe that carries a script, and something that is none of its business."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "hello.py").write_text("print('hello')\n")
    (folder / "secret.txt").write_text("not part of the image")
    (folder / "image.yaml").write_text("base: python\nfiles: {/app/hello.py: hello.py}\ncmd: [python, /app/hello.py]\n")
    return folder


def listed(pdc: Pdc, name: str) -> dict[str, Any]:
    items = pdc("image", "ls", "-o", "json").json()["items"]
    found = [item for item in items if item["name"] == name]
    return dict(found[0]) if found else {}


def test_a_misspelt_base_is_named_with_the_file_of_the_user_and_the_nearest_name(
    pdc: Pdc, data: Path, recipe: Path
) -> None:
    (recipe / "image.yaml").write_text("base: paddlecloud/padle:3.3\npip: [x]\n")
    result = pdc("image", "build", "-f", str(recipe / "image.yaml"), "-t", "mine:1")
    assert result.code == 5
    assert f"{recipe / 'image.yaml'}: no recipe answers for its base paddlecloud/padle:3.3" in result.err
    assert 'did you mean "paddlecloud/paddle:3.3"?' in result.err
    assert str(data) not in result.err


def test_a_file_is_built_and_registered_under_its_tag(pdc: Pdc, data: Path, recipe: Path) -> None:
    result = pdc("image", "build", "-f", str(recipe / "image.yaml"), "-t", "team/demo:v1")
    assert result.code == 0, result.err
    assert result.out.startswith("team/demo:v1 built in ")
    assert "files ready" in result.err, "progress goes to stderr"
    entry = listed(pdc, "team/demo:v1")
    assert entry["state"] == "built"
    assert entry["recipe"] == str(data / "images" / "team-demo-v1" / "image.yaml")
    kept = {path.name for path in (data / "images" / "team-demo-v1").iterdir()}
    assert kept == {"image.yaml", "hello.py", ".registered"}
    assert [path.name for path in data.iterdir()] == ["images"], "nothing else is left in the data directory"


def test_the_registered_recipe_stands_alone(pdc: Pdc, data: Path, recipe: Path, tmp_path: Path) -> None:
    pdc("image", "build", "-f", str(recipe), "-t", "demo")
    for path in recipe.iterdir():
        path.unlink()
    assert pdc("image", "build", "demo").out == "demo is up to date\n"


def test_the_list_says_which_images_are_stand_ins(pdc: Pdc, data: Path, recipe: Path) -> None:
    (recipe / "image.yaml").write_text("base: python\ncmd: [python]\nstands-for: a small program for a suite\n")
    assert pdc("image", "build", "-f", str(recipe), "-t", "team/suite:v1").code == 0
    assert pdc("image", "ls", "team/suite:v1", "-o", "name").out == "team/suite:v1\n"
    header, line = pdc("image", "ls", "team/suite:v1").out.splitlines()
    assert header.rstrip().endswith("STANDS FOR")
    assert line.rstrip().endswith("a small program for a suite")
    assert listed(pdc, "team/suite:v1")["standsFor"] == "a small program for a suite"
    assert listed(pdc, "paddlecloud/paddle:3.3")["standsFor"] == ""


def test_building_again_replaces_what_was_registered(pdc: Pdc, data: Path, recipe: Path) -> None:
    pdc("image", "build", "-f", str(recipe), "-t", "demo")
    first = listed(pdc, "demo")["id"]
    (recipe / "hello.py").write_text("print('changed')\n")
    assert pdc("image", "build", "-f", str(recipe), "-t", "demo").code == 0
    assert listed(pdc, "demo")["id"] != first
    assert len(list((data / "images").iterdir())) == 1


def test_names_of_the_file_serve_without_a_tag(pdc: Pdc, data: Path, recipe: Path) -> None:
    (recipe / "image.yaml").write_text("names: [mine:1]\nbase: python\n")
    assert pdc("image", "build", "-f", str(recipe)).code == 0
    assert listed(pdc, "mine:1")["state"] == "built"


def test_a_recipe_written_by_hand_is_built_where_it_lies(pdc: Pdc, data: Path, recipe: Path) -> None:
    """What ErrImagePull tells people to do."""
    place = data / "images" / "mine"
    place.mkdir(parents=True)
    (place / "image.yaml").write_text("names: [mine]\nbase: python\nfiles: {/x: x}\n")
    (place / "x").write_text("1")
    assert pdc("image", "build", "mine").out.startswith("mine built in ")
    assert sorted(path.name for path in place.iterdir()) == ["image.yaml", "x"]


def test_a_folder_filled_by_hand_is_not_replaced(pdc: Pdc, data: Path, recipe: Path) -> None:
    place = data / "images" / "demo-latest"
    place.mkdir(parents=True)
    (place / "image.yaml").write_text("names: [demo]\n")
    assert pdc("image", "build", "-f", str(recipe), "-t", "demo").code == 4
    assert (place / "image.yaml").read_text() == "names: [demo]\n"


def test_a_failed_build_leaves_nothing_and_shows_why(pdc: Pdc, data: Path, recipe: Path, tmp_path: Path) -> None:
    (recipe / "broken.whl").write_text("no wheel")
    (recipe / "image.yaml").write_text("base: python\npip: [./broken.whl]\npip-options: [--no-index]\n")
    result = pdc("image", "build", "-f", str(recipe), "-t", "demo")
    assert result.code == 1
    assert "broken" in result.err
    lines = [line for line in result.err.splitlines() if line.strip()]
    assert len(lines) == len(set(lines)), "nothing is printed twice"
    (log,) = (tmp_path / "cache" / "paddlecloud" / "images" / "logs").iterdir()
    assert f"all that it printed: {log}" in lines
    assert f"mend {recipe}/image.yaml and build again" in lines[-1], "the user's own file, not a copy"
    assert listed(pdc, "demo") == {}
    assert list((data / "images").glob("*")) == []
    assert list(data.glob(".new-image-*")) == []
    packages = tmp_path / "cache" / "paddlecloud" / "images" / "packages"
    assert list(packages.glob("*")) == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("base: python\n", "has no names"),
        ("names: [x]\nshell: bash\n", "unknown field 'shell'"),
        ("names: [x]\nfiles: {/a: missing}\n", "'missing' does not exist"),
        ("names: [x]\npip: [../own.whl]\n", "outside the recipe's folder"),
        ("names: [x]\npip: [./gone.whl]\n", "does not exist"),
        ("names: [x\n", "cannot read"),
        ("[]\n", "mapping"),
    ],
)
def test_a_bad_recipe_is_invalid(pdc: Pdc, data: Path, recipe: Path, text: str, complaint: str) -> None:
    (recipe / "image.yaml").write_text(text)
    result = pdc("image", "build", "-f", str(recipe))
    assert result.code == 5
    assert complaint in result.err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["build"], 2),
        (["build", "-t", "x"], 2),
        (["build", "x", "-f", "y"], 2),
        (["ls", "-t", "x"], 2),
        (["rm"], 2),
        (["push", "x"], 2),
        (["build", "nobody/knows:1"], 3),
        (["rm", "nobody/knows:1", "-y"], 3),
    ],
)
def test_mistakes(pdc: Pdc, data: Path, arguments: list[str], code: int) -> None:
    assert pdc("image", *arguments).code == code


def test_an_unknown_image_is_answered_with_the_command_that_makes_it_known(pdc: Pdc, data: Path) -> None:
    result = pdc("image", "build", "nobody/knows:1")
    assert "pdc image build -f image.yaml -t nobody/knows:1" in result.err


def test_rm_asks_first(pdc: Pdc, data: Path, recipe: Path) -> None:
    pdc("image", "build", "-f", str(recipe), "-t", "demo")
    assert pdc("image", "rm", "demo").code == 2
    assert listed(pdc, "demo")["state"] == "built"


def test_rm_deletes_what_was_built_and_what_was_registered(pdc: Pdc, data: Path, recipe: Path) -> None:
    pdc("image", "build", "-f", str(recipe), "-t", "demo")
    assert pdc("image", "rm", "demo", "-y").out == "demo removed\n"
    assert listed(pdc, "demo") == {}
    assert list((data / "images").iterdir()) == []


def test_rm_keeps_a_recipe_written_by_hand(pdc: Pdc, data: Path) -> None:
    place = data / "images" / "mine"
    place.mkdir(parents=True)
    (place / "image.yaml").write_text("names: [mine]\nbase: python\nfiles: {/x: image.yaml}\n")
    pdc("image", "build", "mine")
    assert pdc("image", "rm", "mine", "-y").out == "mine removed\n"
    assert listed(pdc, "mine")["state"] == "recipe"


def test_rm_spares_what_a_pod_runs_on(stub: Stub, home: Path, pdc: Pdc, data: Path, recipe: Path) -> None:
    pdc("image", "build", "-f", str(recipe), "-t", "demo")
    stub.add(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "user"},
            "status": {"phase": "Running", "containerStatuses": [{"imageID": listed(pdc, "demo")["id"]}]},
        }
    )
    (data / "kubeconfig").write_text(write_kubeconfig(home, stub.url).read_text())
    pretend_running(data, int(stub.url.rpartition(":")[2]))
    refused = pdc("image", "rm", "demo", "-y")
    assert refused.code == 4
    assert "default/user" in refused.err
    assert pdc("image", "rm", "demo", "-y", "--force").code == 0


def pretend_running(data: Path, port: int) -> None:
    """An endpoint whose process is this test, started as a daemon on that directory would be."""
    (data / "endpoint.json").write_text(json.dumps({"pid": os.getpid(), "port": port, "started": 0}))


@pytest.fixture(autouse=True)
def _any_process_is_a_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paddlecloud.platform.endpoint.is_daemon", lambda pid, data: pid == os.getpid())


def test_json_reports_say_what_was_built(pdc: Pdc, data: Path, recipe: Path) -> None:
    report = pdc("image", "build", "-f", str(recipe), "-t", "demo", "-o", "json")
    assert report.err == ""
    assert report.json()["kind"] == "ImageBuild"
    assert report.json()["items"][0]["built"] is True
    assert pdc("image", "build", "demo", "-o", "json").json()["items"][0]["built"] is False
