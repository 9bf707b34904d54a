"""A bundle: images in one tar file, for machines without a network. It holds what environments are built from there.

    packages/<n>/*.whl   the packages of one environment, as wheels (see `repack`)
    recipes/<n>/…        files that a recipe names
    bundle.json          the manifest: the recipes without their bases, and size and digest of every other file

The manifest is written last: a file that was cut off has none. The caller unpacks a bundle into a folder, safely, and
`read_bundle` refuses whatever differs from the manifest. The environment is then built from the wheels, at the place
and for the interpreter that the plan of the recipe names there: a layer has the same address whether its packages came
from an index or from a bundle.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import platform
import re
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import yaml

from paddlecloud.local.images import repack
from paddlecloud.local.images.errors import BuildError, ImageError
from paddlecloud.local.images.host import own_version
from paddlecloud.local.images.layers import Layers
from paddlecloud.local.images.plan import ImagePlan
from paddlecloud.local.images.recipe import FILE, Recipe, parse_recipe

FORMAT = 1
MANIFEST = "bundle.json"
MOST_MANIFEST = 64 << 20
CHUNK = 1 << 20
_FOLDER = re.compile(r"(recipes|packages)/\d+")
_WHEEL = re.compile(r"[A-Za-z0-9_.]+-[A-Za-z0-9_.+!]+(-[A-Za-z0-9_.]+){3}\.whl")


class BundleError(ImageError):
    """A file that is no whole bundle, or one for another machine."""


class BundledFile(msgspec.Struct, frozen=True, omit_defaults=True):
    size: int
    sha256: str
    executable: bool = False


class BundledImage(msgspec.Struct, frozen=True, omit_defaults=True):
    recipe: dict[str, Any]
    """Its `image.yaml`; paths in it start at `folder`."""
    folder: str
    packages: str = ""
    """The folder of its wheels; empty when it has no packages."""
    python: str = ""
    """The version that the wheels are for."""


class BundleManifest(msgspec.Struct, frozen=True):
    format: int
    machine: str
    images: list[BundledImage]
    files: dict[str, BundledFile]


# Writing


class BundleWriter:
    """`add` images to an open tar file, then `finish`. `scratch` is an empty folder with room for the largest wheel."""

    def __init__(self, tar: tarfile.TarFile, layers: Layers, *, scratch: Path, moved: Callable[[int], None]) -> None:
        self._tar = tar
        self._layers = layers
        self._scratch = scratch
        self._moved = moved
        self._images: list[BundledImage] = []
        self._files: dict[str, BundledFile] = {}
        self._packages: dict[str, tuple[str, str]] = {}

    def add(self, plan: ImagePlan) -> None:
        """An image that is built. Raises `BuildError` when its packages cannot be packed, and `OSError`."""
        if plan.npm:
            raise BuildError(f"{plan.names[0]} has packages of npm, which bundles do not carry: {', '.join(plan.npm)}")
        folder = f"recipes/{len(self._images)}"
        staged = self._scratch / "recipe"
        body = portable_recipe(plan, staged)
        for path in sorted(path for path in staged.rglob("*") if path.is_file()):
            self._add_file(path, f"{folder}/{path.relative_to(staged)}")
        shutil.rmtree(staged)
        packages, python = self._add_packages(plan.packages_key) if plan.packages_key else ("", "")
        self._images.append(BundledImage(recipe=body, folder=folder, packages=packages, python=python))

    def finish(self) -> BundleManifest:
        manifest = BundleManifest(FORMAT, platform.machine(), self._images, self._files)
        content = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
        header = tarfile.TarInfo(MANIFEST)
        header.size = len(content)
        self._tar.addfile(header, io.BytesIO(content))
        return manifest

    def _add_packages(self, key: str) -> tuple[str, str]:
        if key not in self._packages:
            folder = f"packages/{len(self._packages)}"
            venv = self._layers.path("packages", key) / "venv"
            for info in repack.installed(venv):
                wheel = repack.write_wheel(info, venv, self._scratch, moved=self._moved)
                self._add_file(wheel, f"{folder}/{wheel.name}")
                wheel.unlink()
            self._packages[key] = folder, repack.python_version(venv)
        return self._packages[key]

    def _add_file(self, path: Path, name: str) -> None:
        executable = bool(path.stat().st_mode & 0o100)
        header = tarfile.TarInfo(name)
        header.size, header.mode = path.stat().st_size, 0o755 if executable else 0o644
        with path.open("rb") as file:
            self._tar.addfile(header, file)
        self._files[name] = BundledFile(header.size, digest(path), executable)


def portable_recipe(plan: ImagePlan, folder: Path) -> dict[str, Any]:
    """A recipe that gives this plan without its bases; files that it names are copied into the folder."""
    folder.mkdir()

    def carry(source: Path, place: str) -> str:
        copy = folder / place / source.name  # the name is part of what an image is addressed by
        copy.parent.mkdir(parents=True)
        if source.is_dir():
            shutil.copytree(source, copy)
        else:
            shutil.copy2(source, copy)
        return f"{place}/{source.name}"

    pip, alone = (
        [
            f"./{carry(Path(item), f'{place}/{number}')}" if item.startswith("/") else item
            for number, item in enumerate(wanted)
        ]
        for place, wanted in (("pip", plan.pip), ("pip-no-deps", plan.pip_no_deps))
    )
    files = {
        target: carry(source, f"files/{number}") for number, (target, source) in enumerate(sorted(plan.files.items()))
    }
    version = re.search(r"python(\d+\.\d+)$", plan.python)
    python = version[1] if version and version[1] != own_version() else ""
    body = {
        "names": list(plan.names),
        "python": python,
        "apt": list(plan.apt),
        "pip": pip,
        "pip-options": list(plan.pip_options),
        "pip-no-deps": alone,
        "files": files,
        "env": dict(plan.env),
        "entrypoint": list(plan.entrypoint),
        "cmd": list(plan.cmd),
        "user": plan.user,
        "workdir": plan.workdir,
        "preload": list(plan.preload),
        "expose": list(plan.expose),
        "project": bool(plan.library),
        "labels": dict(plan.labels),
        "stands-for": plan.stands_for,
    }
    return {field: value for field, value in body.items() if value}


# Reading


@dataclasses.dataclass(frozen=True, slots=True)
class ImportedImage:
    recipe: Recipe
    wheels: tuple[Path, ...]

    def offline(self, plan: ImagePlan) -> ImagePlan:
        """The plan, with packages from the wheels of the bundle instead of an index."""
        if not self.wheels:
            return plan
        pins = tuple(repack.pin(wheel.name) for wheel in self.wheels)
        options = ("--no-index", "--no-deps", "--find-links", str(self.wheels[0].parent))
        return dataclasses.replace(plan, pip=pins, pip_options=options, pip_no_deps=())


def read_bundle(folder: Path) -> list[ImportedImage]:
    """The images of a bundle that was unpacked into a folder, with recipes there that can be planned. Raises
    `BundleError` unless it is whole and for this machine, and `RecipeError`."""
    manifest = _read_manifest(folder / MANIFEST)
    _check_files(folder, manifest)
    for image in manifest.images:
        _check_machine(image, manifest.machine)
    return [_read_image(folder, image) for image in manifest.images]


def _read_manifest(path: Path) -> BundleManifest:
    if not path.is_file():
        raise BundleError(f"it has no {MANIFEST} at its end: it was cut off, or is no bundle of images")
    if path.stat().st_size > MOST_MANIFEST:
        raise BundleError(f"its {MANIFEST} is larger than {MOST_MANIFEST >> 20} MiB")
    content = path.read_bytes()
    try:
        found = msgspec.json.decode(content)
        if isinstance(found, dict) and found.get("format") != FORMAT:
            raise BundleError(f"it has format {found.get('format')!r}, and this release reads format {FORMAT}")
        manifest = msgspec.convert(found, BundleManifest)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BundleError(f"its {MANIFEST} cannot be read: {error}") from error
    for place in [place for image in manifest.images for place in (image.folder, image.packages or "packages/0")]:
        if not _FOLDER.fullmatch(place):
            raise BundleError(f"its {MANIFEST} names the folder {place!r}")
    return manifest


def _check_files(folder: Path, manifest: BundleManifest) -> None:
    there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} - {MANIFEST}
    if there != set(manifest.files):
        name = sorted(there ^ set(manifest.files))[0]
        raise BundleError(f"{name!r} is {'not listed in' if name in there else 'missing, though listed in'} {MANIFEST}")
    for name, noted in manifest.files.items():
        path = folder / name
        if path.stat().st_size != noted.size or digest(path) != noted.sha256:
            raise BundleError(f"{name!r} is damaged: its size or digest is another than in {MANIFEST}")
        path.chmod(0o755 if noted.executable else 0o644)


def _check_machine(image: BundledImage, machine: str) -> None:
    """Images without packages run on every machine; with them, where the recipe's interpreter is of that version."""
    wanted, has = (image.python, machine), (image.recipe.get("python") or own_version(), platform.machine())
    if image.packages and wanted != has:
        raise BundleError(
            f"it is for Python {wanted[0]} on {wanted[1]}, and this machine has Python {has[0]} on {has[1]}"
        )


def _read_image(folder: Path, image: BundledImage) -> ImportedImage:
    place = folder / image.folder
    place.mkdir(parents=True, exist_ok=True)
    recipe = parse_recipe(image.recipe, place / FILE)
    (place / FILE).write_text(yaml.safe_dump(image.recipe, sort_keys=False, allow_unicode=True))
    name = recipe.names[0]
    if not all(name.isprintable() for name in recipe.names):
        raise BundleError(f"{name!r} is no name of an image")
    if recipe.base:
        raise BundleError(f"{name} has the base {recipe.base}; images of a bundle have none")
    for item in (*recipe.pip, *recipe.pip_no_deps):
        if item.startswith(("/", ".")) and not (place / item).resolve().is_relative_to(place.resolve()):
            raise BundleError(f"{name} installs {item!r}, which is not part of the bundle")
    wheels = tuple(sorted((folder / image.packages).glob("*"))) if image.packages else ()
    for wheel in wheels:
        if not _WHEEL.fullmatch(wheel.name):
            raise BundleError(f"{wheel.name!r} is no name of a wheel")
    if bool(wheels) != bool(recipe.pip or recipe.pip_no_deps):
        raise BundleError(f"{name} and its packages do not belong together")
    return ImportedImage(recipe, wheels)


def digest(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(CHUNK):
            found.update(piece)
    return found.hexdigest()
