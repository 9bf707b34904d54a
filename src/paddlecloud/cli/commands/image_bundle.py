"""`pdc image export` and `import`: images in one file, for machines without a network (`local/images/bundle`).

What is imported is checked as a whole before anything is built. Each image then appears when it is complete: first its
environment, then its recipe, unless the recipes of this machine give the same image under all of its names anyway.
"""

from __future__ import annotations

import argparse
import asyncio
import platform
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from paddlecloud.cli.commands import image
from paddlecloud.cli.failures import CONFLICT, ERROR, INVALID, OK, CliError, InputError, UsageError
from paddlecloud.cli.objects import recipes
from paddlecloud.cli.objects.embedded import data_of
from paddlecloud.cli.render import output, progress
from paddlecloud.cli.session import Session
from paddlecloud.kube.wording import cause_of
from paddlecloud.local.images import repack
from paddlecloud.local.images.builder import Builder
from paddlecloud.local.images.bundle import BundleError, BundleManifest, BundleWriter, ImportedImage, read_bundle
from paddlecloud.local.images.errors import BuildError, ImageUnavailable, RecipeError
from paddlecloud.local.images.host import own_version
from paddlecloud.local.images.layers import Layers
from paddlecloud.local.images.plan import ImagePlan
from paddlecloud.local.images.reference import parse_reference
from paddlecloud.local.images.store import ImageStore
from paddlecloud.storage.archive import unpack
from paddlecloud.storage.errors import StorageError

# Export


def run_export(session: Session, args: argparse.Namespace) -> int:
    fmt = _report_format(args)
    if args.to is None:
        raise UsageError("export to which file?", next=f"pdc image export {_words(args)} --to images.tar")
    if args.to.is_dir() or not args.to.parent.is_dir():
        why = f"{args.to} is a folder" if args.to.is_dir() else f"there is no folder {args.to.parent}"
        raise UsageError(f"cannot write {args.to}", why=why, next="--to FILE, in a folder that exists")
    store = image.store_of(data_of(session))
    plans = [_built_plan(session, store, name) for name in _chosen(store, args)]
    plans = list({plan.names: plan for plan in plans}.values())  # one image may be named twice
    manifest = _write(store, plans, args.to, quiet=bool(fmt.name))
    size = args.to.stat().st_size
    if fmt.name:
        items = [{"names": list(plan.names), "id": plan.image_id} for plan in plans]
        output.print_report(session, "ImageExport", {"file": str(args.to), "sizeBytes": size, "items": items})
    else:
        many = "1 image" if len(plans) == 1 else f"{len(plans)} images"
        versions = " and ".join(sorted({one.python for one in manifest.images if one.python}))
        machines = f"machines with Python {versions} on {manifest.machine}" if versions else "any machine"
        session.print(f"{args.to} written: {many}, {progress.size(size)}, for {machines}")
        session.note(f"next:  pdc image import {args.to.name}    (on the other machine)")
    return OK


def _report_format(args: argparse.Namespace) -> output.Format:
    try:
        return output.parse_format(args.output, ("", *output.STRUCTURED))
    except UsageError as error:
        if args.to is None and ("." in args.output or "/" in args.output):
            raise UsageError(
                f"-o is the format of the report, and {args.output} is a file",
                next=f"pdc image export {_words(args)} --to {args.output}",
            ) from error
        raise


def _words(args: argparse.Namespace) -> str:
    return "--all" if args.all else " ".join(args.names) or "NAME"


def _chosen(store: ImageStore, args: argparse.Namespace) -> list[str]:
    if bool(args.names) == args.all:
        raise UsageError("which images?", why="NAME…, or --all for those that are built", next="pdc image ls")
    if not args.all:
        return list(args.names)
    built = [info.name for info in store.overview() if info.state == "built"]
    if not built:
        raise CliError("no image is built here", next="pdc image build NAME", exit_code=INVALID)
    return built


def _built_plan(session: Session, store: ImageStore, name: str) -> ImagePlan:
    if store.find(name) is None and store.resolve(name) is not None:
        raise CliError(
            f"{name} is the host's own: nothing to export",
            why="an image of that name is the programs of the machine that it runs on",
            next="the same command without it",
            exit_code=INVALID,
        )
    recipe = image.known_recipe(store, name)
    if store.resolve(name) is None:
        image.build_named(session, store, name)
    return store.plan(recipe)


def _write(store: ImageStore, plans: list[ImagePlan], target: Path, *, quiet: bool) -> BundleManifest:
    """Beside its place first, and there only when it is whole."""
    layers = Layers(store.cache)
    keys = {plan.packages_key for plan in plans if plan.packages_key}
    total = sum(repack.packed_size(layers.path("packages", key) / "venv") for key in keys)
    meter = progress.Meter(f"writing {target}", total=total, quiet=quiet)
    try:
        with tempfile.TemporaryDirectory(prefix=".export-", dir=target.parent) as scratch:
            draft, work = Path(scratch, "bundle.tar"), Path(scratch, "work")
            work.mkdir()
            with tarfile.open(draft, "w") as tar:
                writer = BundleWriter(tar, layers, scratch=work, moved=meter.add)
                for plan in plans:
                    writer.add(plan)
                manifest = writer.finish()
            draft.replace(target)
            return manifest
    except (OSError, BuildError) as error:
        raise CliError(f"cannot write {target}", why=cause_of(error), exit_code=ERROR) from error
    finally:
        meter.end()


# Import

_EXPORT = (
    "pdc image export NAME… --to FILE    (on a machine with a network, and Python "
    f"{own_version()} on {platform.machine()} as here)"
)


def run_import(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.STRUCTURED))
    if not args.names:
        raise UsageError("import which file?", next=f"{_EXPORT}; here: pdc image import FILE")
    data = data_of(session)
    items = []
    for file in map(Path, args.names):
        with _explained(file, shown=not args.output):
            items += _import(session, data, file, force=args.force)
    if fmt.name:
        output.print_report(session, "ImageImport", {"items": items})
    return OK


def _import(session: Session, data: Path, file: Path, *, force: bool) -> list[dict[str, Any]]:
    if not file.is_file():
        raise UsageError(f"no such file: {file}", next=_EXPORT)
    store = image.store_of(data)
    quiet = bool(session.args.output)
    with recipes.staging(data) as staging:
        with progress.working(f"reading {file}", quiet=quiet) as show:
            show(f"reading {file}, {progress.size(file.stat().st_size)}")
            unpack(file, staging / "bundle", name=str(file))
            images = read_bundle(staging / "bundle")
            plans = [store.plan(one.recipe) for one in images]
        new = [not _is_here(store, plan) for plan in plans]
        for plan in [plan for plan, register in zip(plans, new, strict=True) if register]:
            _check_place(store, data, plan, file, force=force)
        items = []
        for one, plan, register in zip(images, plans, new, strict=True):
            items.append(_take(session, store, one, plan))
            if register:
                staged = one.recipe.folder.rename(staging / recipes.slug(plan.names[0]))
                (staged / recipes.MARK).touch()
                image.warn_if_hidden(session, data, plan.names[0], recipes.register(staged, data))
        return items


@contextmanager
def _explained(file: Path, *, shown: bool) -> Iterator[None]:
    """`shown` says that the lines of builds were printed."""
    try:
        yield
    except (StorageError, BundleError, RecipeError) as error:
        raise InputError(f"cannot import {file}", why=str(error), next=_EXPORT) from error
    except (BuildError, ImageUnavailable, OSError) as error:
        why = error.summary if shown and isinstance(error, BuildError) else cause_of(error)
        raise CliError(f"cannot import {file}", why=why, exit_code=ERROR, reason="Build") from error


def _is_here(store: ImageStore, plan: ImagePlan) -> bool:
    """Whether the recipes of this machine give this image under each of its names."""
    return all(_id_here(store, name) == plan.image_id for name in plan.names)


def _id_here(store: ImageStore, name: str) -> str | None:
    """The image that a recipe of just this name gives here; None where there is no such recipe."""
    recipe = store.find(name)
    if recipe is None or parse_reference(name) not in recipe.references:
        return None
    try:
        return store.plan(recipe).image_id
    except (RecipeError, ImageUnavailable):
        return ""


def _check_place(store: ImageStore, data: Path, plan: ImagePlan, file: Path, *, force: bool) -> None:
    """Another recipe under one of its names is replaced on demand only, and one written by hand never."""
    recipes.check_free(data, plan.names[0])
    for name in plan.names:
        found = store.find(name)
        if found is None or _id_here(store, name) in (None, plan.image_id):
            continue
        by_hand = found.folder.is_relative_to(recipes.folder_of(data)) and not (found.folder / recipes.MARK).exists()
        instead = f"pdc image import {file} --force    (the recipe of the bundle is used instead)"
        if by_hand or not force:
            raise CliError(
                f"{name} has another recipe here",
                why=f"{found.path} gives another image than {file}",
                next=f"remove {found.folder}, and import again" if by_hand else instead,
                exit_code=CONFLICT,
            )


def _take(session: Session, store: ImageStore, one: ImportedImage, plan: ImagePlan) -> dict[str, Any]:
    layers = Layers(store.cache)
    ready = layers.is_built(plan)
    name, *others = plan.names
    names = name + (f" (also {', '.join(others)})" if others else "")
    quiet = bool(session.args.output)
    began = time.monotonic()
    with progress.working(f"importing {names}", quiet=quiet) as show:
        asyncio.run(Builder(layers).build(one.offline(plan), progress=show))
    if not quiet:
        session.print(f"{names} {'is up to date' if ready else f'imported in {time.monotonic() - began:.1f} s'}")
    return {"names": list(plan.names), "id": plan.image_id, "built": not ready}
