"""`pdc image export` and `import`: real builds; two caches and two data directories are the two machines."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import resource
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from paddlecloud.cli.main import main
from paddlecloud.cli.objects import recipes
from paddlecloud.local.images import builder
from unit.cli.conftest import Pdc
from unit.local.images.wheels import write_wheel

DEMO, BASE = "team/demo:v1", "team/base:v1"


class Machine(NamedTuple):
    cache: Path
    data: Path

    def traces(self) -> list[str]:
        """What is left of an import: layers, complete or not, and files in the data directory."""
        layers = [path for kind in ("packages", "files") for path in self.cache.glob(f"paddlecloud/images/{kind}/*")]
        recipes = [path for path in self.data.rglob("*") if path.is_file() or path.name.startswith(".")]
        return [str(path) for path in (*layers, *recipes)]


def use(machine: Machine, patch: pytest.MonkeyPatch) -> Machine:
    """A machine that reaches no package index."""
    patch.setenv("XDG_CACHE_HOME", str(machine.cache))
    patch.setenv("PADDLECLOUD_HOME", str(machine.data))
    patch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    patch.setenv("PIP_CONFIG_FILE", os.devnull)
    patch.setenv("UV_OFFLINE", "1")
    return machine


def write_recipes(folder: Path) -> None:
    """An image with files on a base with packages, one of which is found by its name in a folder of wheels."""
    (folder / "wheels").mkdir(parents=True)
    write_wheel(folder / "wheels")
    (folder / "base").mkdir()
    write_wheel(folder / "base", "own", "VALUE = 1\n")
    (folder / "base" / "image.yaml").write_text(
        f"pip: [tiny, ./own-1.0-py3-none-any.whl]\npip-options: [--no-index, --find-links, {folder}/wheels]\n"
        "env: {A: '1'}\ncmd: [run]\n"
    )
    (folder / "demo" / "conf").mkdir(parents=True)
    (folder / "demo" / "run").write_text("#!/bin/sh\necho run\n")
    (folder / "demo" / "run").chmod(0o755)
    (folder / "demo" / "conf" / "a.ini").write_text("x=1\n")
    (folder / "demo" / "image.yaml").write_text(
        f"base: {BASE}\nfiles: {{/usr/local/bin/run: run, /srv/conf: conf}}\nstands-for: this for that\n"
    )


class Exported(NamedTuple):
    file: Path
    images: dict[str, dict[str, Any]]
    """What was listed of them where they were built."""


def run_main(*arguments: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(list(arguments)) == 0
    return out.getvalue()


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """A bundle of two images; all else of the machine that made it is gone."""
    place = tmp_path_factory.mktemp("exporting")
    write_recipes(place / "work")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(place / "work"))
        use(Machine(place / "cache", place / "data"), patch)
        for name in ("base", "demo"):
            run_main("image", "build", "-f", str(place / "work" / name), "-t", f"team/{name}:v1")
        said = run_main("image", "export", "--all", "--to", str(place / "images.tar"))
        assert said.startswith(f"{place}/images.tar written: 2 images, ")
        items = json.loads(run_main("image", "ls", DEMO, BASE, "-o", "json"))["items"]
    for folder in ("work", "cache", "data"):
        shutil.rmtree(place / folder)
    assert [path.name for path in place.iterdir()] == ["images.tar"], "nothing else is written beside it"
    return Exported(place / "images.tar", {item["name"]: item for item in items})


@pytest.fixture
def bundle(exported: Exported, tmp_path: Path) -> Path:
    return Path(shutil.copy(exported.file, tmp_path / "images.tar"))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return use(Machine(tmp_path / "cache", tmp_path / "data"), monkeypatch)


def listed(pdc: Pdc, name: str) -> dict[str, Any]:
    items = pdc("image", "ls", "-o", "json").json()["items"]
    return next((dict(item) for item in items if item["name"] == name), {})


# Carrying over


def test_given_no_network_when_a_bundle_is_imported_then_its_images_are_built(
    pdc: Pdc, here: Machine, bundle: Path, exported: Exported
) -> None:
    result = pdc("image", "import", str(bundle))
    assert result.code == 0, result.err
    first, second = result.out.splitlines()
    assert first.startswith(f"{BASE} imported in ")
    assert second.startswith(f"{DEMO} imported in ")
    assert "packages ready" in result.err, "progress, as of any build"
    for name, before in exported.images.items():
        now = listed(pdc, name)
        kept = ("id", "state", "standsFor")
        assert {key: now[key] for key in kept} == {key: before[key] for key in kept}
        assert now["recipe"].startswith(str(here.data / "images"))
    python = next(here.cache.glob("paddlecloud/images/packages/*/venv/bin/python"))
    done = subprocess.run(
        [python, "-c", "import tiny, own; print(tiny.VALUE, own.VALUE)"], capture_output=True, text=True, cwd="/"
    )
    assert done.stdout == "41 1\n"
    root = next(here.cache.glob("paddlecloud/images/files/*/root"))
    assert subprocess.run([root / "usr/local/bin/run"], capture_output=True, text=True).stdout == "run\n"
    assert (root / "srv/conf/a.ini").read_text() == "x=1\n"
    assert not list(here.data.glob(".*")), "what was unpacked is gone"

    again = pdc("image", "import", str(bundle), "-o", "json")
    assert (again.code, again.err, again.json()["kind"]) == (0, "", "ImageImport")
    assert [item["built"] for item in again.json()["items"]] == [False, False]
    assert len(list((here.data / "images").iterdir())) == 2

    onward = pdc("image", "export", DEMO, "--to", str(bundle), "-o", "json")
    assert (onward.code, onward.err) == (0, "")
    assert onward.json()["items"] == [{"names": [DEMO], "id": exported.images[DEMO]["id"]}]


def test_an_image_that_is_not_built_is_built_first_and_one_without_packages_fits_any_machine(
    pdc: Pdc, here: Machine, tmp_path: Path
) -> None:
    place = here.data / "images" / "mine"
    place.mkdir(parents=True)
    (place / "hello.py").write_text("print('hello')\n")
    (place / "image.yaml").write_text("names: [mine, mine:v2]\nbase: python\nfiles: {/hello.py: hello.py}\n")
    file = tmp_path / "mine.tar"
    result = pdc("image", "export", "mine", "mine:v2", "--to", str(file))
    assert result.code == 0, result.err
    built, written = result.out.splitlines()
    assert built.startswith("mine built in ")
    assert "1 image, " in written
    assert written.endswith(", for any machine")
    assert "pdc image import mine.tar" in result.err
    edit_manifest(file, lambda manifest: {**manifest, "machine": "sparc64"})
    shutil.rmtree(here.data)
    shutil.rmtree(here.cache)
    assert pdc("image", "import", str(file)).code == 0
    assert listed(pdc, "mine:v2")["state"] == "built"


def test_given_the_same_recipe_here_then_none_is_added(pdc: Pdc, here: Machine, tmp_path: Path) -> None:
    """As with the recipes that every installation has."""
    place = here.data / "images" / "by-hand"
    place.mkdir(parents=True)
    (place / "x").write_text("1")
    (place / "image.yaml").write_text("names: [mine]\nbase: python\nfiles: {/x: x}\n")
    file = tmp_path / "mine.tar"
    assert pdc("image", "export", "mine", "--to", str(file)).code == 0
    shutil.rmtree(here.cache)
    assert pdc("image", "import", str(file)).code == 0
    assert listed(pdc, "mine")["state"] == "built"
    assert [path.name for path in (here.data / "images").iterdir()] == ["by-hand"]


# Recipes that differ


def other_recipe(pdc: Pdc, tmp_path: Path) -> str:
    other = tmp_path / "other"
    other.mkdir()
    (other / "image.yaml").write_text("base: python\nenv: {A: other}\n")
    assert pdc("image", "build", "-f", str(other), "-t", DEMO).code == 0
    return str(listed(pdc, DEMO)["id"])


def test_another_recipe_of_the_name_is_replaced_only_on_demand(
    pdc: Pdc, here: Machine, bundle: Path, tmp_path: Path, exported: Exported
) -> None:
    before = other_recipe(pdc, tmp_path)
    refused = pdc("image", "import", str(bundle))
    assert refused.code == 4
    assert f"{DEMO} has another recipe here" in refused.err
    assert f"pdc image import {bundle} --force" in refused.err
    assert listed(pdc, DEMO)["id"] == before
    assert listed(pdc, BASE) == {}, "it is refused as a whole"
    assert pdc("image", "import", str(bundle), "--force").code == 0
    assert listed(pdc, DEMO)["id"] == exported.images[DEMO]["id"]


@pytest.mark.parametrize("folder", ["team-demo-v1", "another"])
def test_a_recipe_written_by_hand_is_never_replaced(pdc: Pdc, here: Machine, bundle: Path, folder: str) -> None:
    place = here.data / "images" / folder
    place.mkdir(parents=True)
    (place / "image.yaml").write_text(f"names: ['{DEMO}']\n")
    refused = pdc("image", "import", str(bundle), "--force")
    assert refused.code == 4
    assert str(place) in refused.err
    assert (place / "image.yaml").read_text() == f"names: ['{DEMO}']\n"


# Refusals


def read_members(file: Path) -> dict[str, bytes]:
    with tarfile.open(file) as tar:
        return {item.name: tar.extractfile(item).read() for item in tar}  # type: ignore[union-attr]


def write_members(file: Path, members: dict[str, bytes], *more: tarfile.TarInfo) -> None:
    with tarfile.open(file, "w") as tar:
        for name, content in members.items():
            item = tarfile.TarInfo(name)
            item.size = len(content)
            tar.addfile(item, io.BytesIO(content))
        for item in more:
            tar.addfile(item, io.BytesIO(bytes(item.size)))


def edit_manifest(file: Path, edit: Callable[[Any], Any]) -> None:
    members = read_members(file)
    members["bundle.json"] = json.dumps(edit(json.loads(members["bundle.json"]))).encode()
    write_members(file, members)


def edit_image(**fields: Any) -> Callable[[Path], None]:
    return lambda file: edit_manifest(
        file, lambda manifest: {**manifest, "images": [{**manifest["images"][0], **fields}]}
    )


def edit_recipe(**fields: Any) -> Callable[[Path], None]:
    def edit(manifest: dict[str, Any]) -> dict[str, Any]:
        image = manifest["images"][0]
        return {**manifest, "images": [{**image, "recipe": {**image["recipe"], **fields}}]}

    return lambda file: edit_manifest(file, edit)


def edit_field(name: str, value: Any) -> Callable[[Path], None]:
    return lambda file: edit_manifest(file, lambda manifest: {**manifest, name: value})


def cut(share: float) -> Callable[[Path], None]:
    return lambda file: file.write_bytes(file.read_bytes()[: int(file.stat().st_size * share)])


def damage(file: Path) -> None:
    """A byte of a wheel, as a bad disk would."""
    members = read_members(file)
    wheel = next(name for name in members if name.endswith(".whl"))
    members[wheel] = members[wheel][:-30] + b"x" + members[wheel][-29:]
    write_members(file, members)


def drop(suffix: str) -> Callable[[Path], None]:
    def edit(file: Path) -> None:
        write_members(file, {name: data for name, data in read_members(file).items() if not name.endswith(suffix)})

    return edit


def add(name: str, *, kind: bytes = tarfile.REGTYPE, target: str = "") -> Callable[[Path], None]:
    def edit(file: Path) -> None:
        item = tarfile.TarInfo(name)
        item.type, item.linkname, item.size = kind, target, 0 if target else 3
        write_members(file, read_members(file), item)

    return edit


REFUSED = {
    "another Python": (edit_image(python="2.7"), "it is for Python 2.7 on "),
    "another processor": (edit_field("machine", "sparc64"), " on sparc64, and this machine has Python "),
    "cut off in a file": (cut(0.2), "unexpected end of data"),
    "cut off before the manifest": (drop("bundle.json"), "it has no bundle.json at its end: it was cut off"),
    "damaged": (damage, "is damaged: its size or digest is another"),
    "a file missing": (drop(".whl"), "is missing, though listed"),
    "a file too many": (add("recipes/0/more"), "'recipes/0/more' is not listed"),
    "no archive": (lambda file: file.write_text("no archive"), "is not the archive its name promises"),
    "a path that leads out": (add("../outside"), "leads outside"),
    "an absolute path": (add("/tmp/outside"), "leads outside"),
    "a symbolic link": (add("packages/0/a.whl", kind=tarfile.SYMTYPE, target="/etc/passwd"), "is a link or a device"),
    "a hard link": (add("recipes/0/a", kind=tarfile.LNKTYPE, target="/etc/passwd"), "is a link or a device"),
    "a device": (add("recipes/0/a", kind=tarfile.CHRTYPE, target="x"), "is a link or a device"),
    "a later format": (edit_field("format", 2), "it has format 2, and this release reads format 1"),
    "a manifest of other fields": (edit_field("images", {}), "cannot be read"),
    "a manifest that is a list": (lambda file: edit_manifest(file, lambda _: []), "cannot be read"),
    "a folder elsewhere": (edit_image(folder="../../x"), "names the folder '../../x'"),
    "packages elsewhere": (edit_image(packages="/usr"), "names the folder '/usr'"),
    "no packages for an image with packages": (edit_image(packages=""), "do not belong together"),
    "files outside of the bundle": (edit_recipe(files={"/x": "../../bundle.json"}), "lies outside"),
    "packages outside of the bundle": (edit_recipe(pip=["/etc"]), "which is not part of the bundle"),
    "packages above the recipe": (edit_recipe(pip=["./../../x"]), "which is not part of the bundle"),
    "a base": (edit_recipe(base="paddlecloud/paddle:3.3"), "images of a bundle have none"),
    "an unknown field": (edit_recipe(shell="bash"), "unknown field 'shell'"),
    "a name that moves the cursor": (edit_recipe(names=["a\x1b[2J"]), "is no name of an image"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_bundle_that_is_not_whole_or_not_for_here_is_refused_and_leaves_nothing(
    pdc: Pdc, here: Machine, bundle: Path, tmp_path: Path, case: str
) -> None:
    spoil, words = REFUSED[case]
    spoil(bundle)
    before = sorted(tmp_path.rglob("*"))
    result = pdc("image", "import", str(bundle))
    assert words in result.err
    assert result.code == 5
    assert "next:  pdc image export" in result.err
    assert here.traces() == []
    assert sorted(path for path in tmp_path.rglob("*") if path not in (here.data, here.cache)) == before


def test_a_wheel_that_cannot_be_installed_leaves_nothing(pdc: Pdc, here: Machine, bundle: Path) -> None:
    members = read_members(bundle)
    manifest = json.loads(members["bundle.json"])
    wheel = next(name for name in members if name.endswith("/tiny-1.0-py3-none-any.whl"))
    members[wheel] = b"no wheel"
    manifest["files"][wheel] = {"size": 8, "sha256": hashlib.sha256(members[wheel]).hexdigest()}
    write_members(bundle, {**members, "bundle.json": json.dumps(manifest).encode()})
    result = pdc("image", "import", str(bundle))
    assert result.code == 1
    assert "tiny" in result.err
    assert here.traces() == []


def test_an_import_that_is_interrupted_leaves_nothing(
    pdc: Pdc, here: Machine, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def install(plan: Any, layer: Path, progress: Any, how_far: Any) -> None:
        (layer / "venv" / "bin").mkdir(parents=True)
        raise KeyboardInterrupt

    monkeypatch.setattr(builder, "_install", install)
    assert pdc("image", "import", str(bundle)).code == 130
    assert here.traces() == []


def test_what_a_killed_import_unpacked_is_removed_by_the_next_one_and_what_is_in_use_is_not(
    pdc: Pdc, here: Machine, bundle: Path
) -> None:
    left = here.data / ".new-image-left"
    (left / "bundle").mkdir(parents=True)
    edit_field("format", 2)(bundle)
    with recipes.staging(here.data) as used:
        assert not left.exists()
        left.mkdir()
        assert pdc("image", "import", str(bundle)).code == 5
        assert used.exists()
        assert not left.exists()
    assert list(here.data.iterdir()) == []


@contextlib.contextmanager
def full_disk(patch: pytest.MonkeyPatch, *, after: int) -> Iterator[None]:
    """No file grows beyond so many bytes."""
    patch.setattr(sys, "dont_write_bytecode", True)  # Python would keep what it wrote of it
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (after, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("action", ["export", "import"])
def test_on_a_full_disk_nothing_is_left(
    pdc: Pdc, here: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    place = here.data / "images" / "mine"
    place.mkdir(parents=True)
    (place / "x").write_bytes(bytes(100_000))
    (place / "image.yaml").write_text("names: [mine]\nbase: python\nfiles: {/x: x}\n")
    file = tmp_path / "mine.tar"
    assert pdc("image", "export", "mine", "--to", str(file)).code == 0
    arguments = ["export", "mine", "--to", str(tmp_path / "more.tar")]
    if action == "import":
        assert pdc("image", "rm", "mine", "-y").code == 0
        arguments = ["import", str(file)]
    before, beside = here.traces(), sorted(tmp_path.iterdir())
    with full_disk(monkeypatch, after=50_000):
        result = pdc("image", *arguments)
    assert result.code in (1, 5)
    assert "file too large" in result.err
    assert here.traces() == before
    assert sorted(tmp_path.iterdir()) == beside


# Mistakes


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["export", "--to", "x.tar"], 2, "NAME…, or --all"),
        (["export", "paddlecloud/runtime", "--all", "--to", "x.tar"], 2, "NAME…, or --all"),
        (["export", "--all", "--to", "x.tar"], 5, "no image is built here"),
        (["export", "paddlecloud/runtime"], 2, "next:  pdc image export paddlecloud/runtime --to images.tar"),
        (["export", "paddlecloud/runtime", "-o", "x.tar"], 2, "next:  pdc image export paddlecloud/runtime --to x.tar"),
        (["export", "paddlecloud/runtime", "--to", "nowhere/x.tar"], 2, "there is no folder nowhere"),
        (["export", "paddlecloud/runtime", "--to", "/tmp"], 2, "/tmp is a folder"),
        (["export", "paddlecloud/runtme", "--to", "x.tar"], 3, 'did you mean "paddlecloud/runtime"?'),
        (["export", "busybox", "--to", "x.tar"], 5, "busybox is the host's own: nothing to export"),
        (["import"], 2, "import which file?"),
        (["import", "nowhere.tar"], 2, "no such file: nowhere.tar"),
        (["import", "nowhere.tar", "--to", "x"], 2, "image import takes no --to"),
        (["build", "x", "--force"], 2, "image build takes no --force"),
        (["ls", "--all"], 2, "image ls takes no --all"),
    ],
)
def test_mistakes(pdc: Pdc, here: Machine, arguments: list[str], code: int, words: str) -> None:
    result = pdc("image", *arguments)
    assert words in result.err
    assert result.code == code
    assert here.traces() == []
