"""The Dockerfile form of a recipe, read back as docker reads it and held against the built image, step by step."""

from __future__ import annotations

import json
import re
import shlex
import tarfile
from pathlib import Path
from typing import Any

import pytest

from cluster.harness.base_images import ImageCache
from cluster.harness.python_image import environment_image
from harness import pdc
from paddlecloud import __version__
from paddlecloud.local.images import dockerfile, shipped
from paddlecloud.local.images.plan import ImagePlan
from paddlecloud.local.images.store import ImageStore

from .test_store import write_recipe
from .wheels import write_wheel

Step = tuple[str, str]


def parse(text: str) -> list[Step]:
    """Instruction and argument of each line; these Dockerfiles need neither continuations nor here-documents."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    steps = [(line.partition(" ")[0], line.partition(" ")[2]) for line in lines]
    assert steps[0][0] == "FROM"
    assert {word for word, _ in steps} <= {
        "FROM",
        "ARG",
        "RUN",
        "COPY",
        "LABEL",
        "ENV",
        "EXPOSE",
        "WORKDIR",
        "USER",
        "ENTRYPOINT",
        "CMD",
    }
    return steps


def arguments(steps: list[Step], instruction: str) -> list[str]:
    return [argument for word, argument in steps if word == instruction]


def environment_of(steps: list[Step]) -> dict[str, str]:
    """ENV as docker would set it: quotes and escapes removed, and no variable left to be replaced."""
    found = {}
    for argument in arguments(steps, "ENV"):
        name, _, value = argument.partition("=")
        inner = re.fullmatch(r'"(.*)"', value)
        assert inner, argument
        assert not re.search(r"(?<!\\)\$", inner[1]), f"docker would replace a variable in {argument}"
        found[name] = re.sub(r"\\(.)", r"\1", inner[1])
    return found


def plan_of(store: ImageStore, name: str) -> ImagePlan:
    recipe = store.find(name)
    assert recipe is not None
    return store.plan(recipe)


async def test_docker_and_the_harness_build_the_same_image_from_one_recipe(tmp_path: Path) -> None:
    folder = tmp_path / "recipes"
    write_wheel(write_recipe(folder, "base", pip=["./tiny-1.0-py3-none-any.whl"], env={"A": "from base"}).parent)
    place = write_recipe(
        folder,
        "app",
        base="example.com/base:v1",
        files={"/srv/app/run.py": "run.py", "/srv/conf": "conf"},
        env={"PRICE": 'say "5 $HOME" \\ now'},
        entrypoint=["python", "/srv/app/run.py"],
        cmd=["--loud"],
        user="1000:1000",
        workdir="/srv/app",
        expose=[8080],
        **{"stands-for": "a 'small' program for $HOME"},
    ).parent
    (place / "conf").mkdir()
    (place / "conf" / "a.yaml").write_text("a: 1\n")
    (place / "run.py").write_text("import tiny\n")
    store = ImageStore(cache=tmp_path / "cache", folders=[folder])

    environment = await store.build("example.com/app:v1")
    cache = ImageCache(tmp_path / "images")
    image = environment_image(cache, environment)
    manifest = json.loads(cache.store.path(image.digest).read_bytes())
    built = json.loads(cache.store.path(manifest["config"]["digest"]).read_bytes())["config"]
    contents, noted = (_files(cache.store.path(layer["digest"])) for layer in manifest["layers"][-2:])

    context = tmp_path / "context"
    steps = parse(dockerfile.write(plan_of(store, "example.com/app:v1"), context).read_text())
    (copied,) = [argument for argument in arguments(steps, "COPY") if argument.startswith("files/")]
    assert copied == "files/ /"
    files = context / "files"
    assert {str(path.relative_to(files)): path.read_bytes() for path in files.rglob("*") if path.is_file()} == contents
    assert "COPY stand-in/ /" in dockerfile.render(plan_of(store, "example.com/app:v1"))
    note = context / "stand-in"
    assert {str(path.relative_to(note)): path.read_bytes() for path in note.rglob("*") if path.is_file()} == noted
    assert len(noted) == 3
    reported = dict(line.split("=", 1) for line in built["Env"])
    assert {name: value for name, value in reported.items() if name != "PATH"} == environment_of(steps)
    assert [json.loads(each) for each in arguments(steps, "ENTRYPOINT")] == [built["Entrypoint"]]
    assert [json.loads(each) for each in arguments(steps, "CMD")] == [built["Cmd"]]
    assert (arguments(steps, "USER"), arguments(steps, "WORKDIR")) == ([built["User"]], [built["WorkingDir"]])
    assert arguments(steps, "EXPOSE") == ["8080"]
    stands_for = "a 'small' program for $HOME"
    assert built["Labels"] == {"paddlecloud.org/version": __version__, "paddlecloud.org/stands-for": stands_for}
    escaped = stands_for.replace("$", "\\$")
    assert arguments(steps, "LABEL") == [
        f'paddlecloud.org/version="{__version__}"',
        f'paddlecloud.org/stands-for="{escaped}"',
    ]
    (install,) = arguments(steps, "RUN")
    assert "/tmp/wheels/tiny-1.0-py3-none-any.whl" in shlex.split(install)
    assert (context / "wheels" / "tiny-1.0-py3-none-any.whl").is_file()


def _files(layer: Path) -> dict[str, bytes]:
    with tarfile.open(layer) as archive:
        return {member.name: _bytes(archive, member) for member in archive.getmembers() if member.isfile()}


def _bytes(layer: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    content = layer.extractfile(member)
    assert content is not None
    return content.read()


SHIPPED = sorted(path.parent.name for folder in shipped.folders() for path in folder.glob("*/image.yaml"))


@pytest.mark.parametrize("recipe", SHIPPED)
def test_every_shipped_recipe_has_a_dockerfile_with_all_it_asks_for(recipe: str, tmp_path: Path) -> None:
    store = ImageStore(cache=tmp_path / "cache")
    (found,) = [each for each in store.recipes() if each.folder.name == recipe]
    plan = store.plan(found)
    steps = parse(dockerfile.write(plan, tmp_path / "context").read_text())
    runs = [
        shlex.split(run.partition("&& ")[0] if plan.npm else run.partition("&& rm")[0])
        for run in arguments(steps, "RUN")
    ]
    installed = {word for run in runs for word in run}
    assert {*plan.pip, *plan.apt, *plan.npm} <= installed
    for target in plan.files:
        assert (tmp_path / "context" / "files" / target.lstrip("/")).exists()
    if plan.library:
        assert (tmp_path / "context/library/paddlecloud/serving/command.py").exists()
        assert environment_of(steps)["PYTHONPATH"].split(":")[0] == dockerfile.LIBRARY
    assert [json.loads(each) for each in arguments(steps, "ENTRYPOINT")] == [list(plan.entrypoint)] * bool(
        plan.entrypoint
    )


def test_what_an_earlier_recipe_copied_is_not_left(tmp_path: Path) -> None:
    def written(**fields: Any) -> None:
        folder = tmp_path / "recipes"
        place = write_recipe(folder, "app", **fields).parent
        (place / "a").write_text("a")
        dockerfile.write(plan_of(ImageStore(cache=tmp_path / "c", folders=[folder]), "example.com/app:v1"), context)

    context = tmp_path / "context"
    (tmp_path / "recipes" / "app").mkdir(parents=True)
    (tmp_path / "recipes" / "app" / "a").write_text("a")
    written(files={"/old": "a"})
    written(files={"/new": "a"})
    assert [path.name for path in (context / "files").iterdir()] == ["new"]


def test_a_folder_with_other_things_in_it_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    refused = pdc(
        "image",
        "dockerfile",
        "paddlecloud/paddle:3.3",
        "--to",
        str(tmp_path),
        "--data",
        str(tmp_path / "d"),
        check=False,
    )
    assert refused.returncode != 0
    assert "holds other files" in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_on_an_image_that_has_paddle_only_the_rest_is_installed() -> None:
    store = ImageStore()
    recipe = store.find("paddlecloud/paddle:3.3")
    assert recipe is not None
    plan = store.plan(recipe)
    text = dockerfile.render(plan, on="paddlepaddle/paddle:3.3.1-gpu-cuda12.6-cudnn9.5")
    assert "FROM paddlepaddle/paddle:3.3.1-gpu-cuda12.6-cudnn9.5" in text
    assert "apt-get" not in text
    assert "paddlepaddle==" not in text
    assert "msgspec" in text
