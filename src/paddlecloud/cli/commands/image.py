"""`pdc image`: the images of this machine, made from recipes (`image.yaml`) instead of pulled.

  pdc image build NAME…                    build what a recipe of that name says
  pdc image build -f image.yaml -t NAME    the same from a file of yours, registered under NAME
  pdc image build NAME --on-cluster --push REGISTRY/NAME:TAG
                                           built by a pod of the cluster, with buildah, and pushed from there
  pdc image ci --push REGISTRY/FOLDER [SUITE…]
                                           the builds of the suites' images as Tekton objects, to be applied
  pdc image dockerfile NAME [--to DIR]     the recipe as a Dockerfile; with DIR all that `docker build DIR` needs
  pdc image ls                             what there is, and what is built
  pdc image rm NAME…                       delete what was built; a registered recipe goes too
  pdc image export NAME… --to FILE         images in one file, for machines without a network; builds them first
  pdc image import FILE…                   the images of such a file, on a machine with the same Python and processor

Pods build an image by themselves when they first need it; building it before shows the whole build.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from paddlecloud.cli.failures import CONFLICT, ERROR, INVALID, NOT_FOUND, OK, CliError, UsageError, attempting
from paddlecloud.cli.objects import recipes
from paddlecloud.cli.objects.embedded import data_of
from paddlecloud.cli.parsing import Parsers
from paddlecloud.cli.render import output, progress, table
from paddlecloud.cli.session import Session
from paddlecloud.kube.nearest import question
from paddlecloud.local.images.errors import BuildError, ImageUnavailable, RecipeError
from paddlecloud.local.images.plan import ImagePlan
from paddlecloud.local.images.recipe import Recipe
from paddlecloud.local.images.shipped import missing_package
from paddlecloud.local.images.store import ImageInfo, ImageStore
from paddlecloud.platform import endpoint


def add_commands(parsers: Parsers) -> None:
    formatter = argparse.RawDescriptionHelpFormatter
    usage = f"pdc image {'|'.join(ACTIONS)} [NAME…] [flags]"
    parser = parsers.add_parser("image", description=__doc__, formatter_class=formatter, usage=usage)
    parser.add_argument("action", choices=tuple(ACTIONS))
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("-f", "--filename", type=Path, metavar="FILE", help="build: an image.yaml, or its folder")
    parser.add_argument("-t", "--tag", action="append", default=[], metavar="NAME", help="build: name to register")
    parser.add_argument(
        "--to",
        type=Path,
        metavar="PATH",
        help="dockerfile: folder to write instead of printing; export: file to write",
    )
    parser.add_argument("--base", metavar="IMAGE", help="dockerfile: begin with this image, which has Paddle")
    parser.add_argument("--on-cluster", action="store_true", help="build: by a pod of the cluster, for a registry")
    parser.add_argument("--push", metavar="IMAGE", help="build --on-cluster: where to push; ci: registry and folder")
    parser.add_argument("--push-secret", metavar="NAME", help="on a cluster: Secret with the registry's keys")
    parser.add_argument("--plain-http", action="store_true", help="on a cluster: the registries have no TLS")
    parser.add_argument("--pip-index", metavar="URL", help="on a cluster: index from which packages come")
    parser.add_argument("--builder", metavar="IMAGE", help="on a cluster: image with buildah")
    parser.add_argument("--tool", metavar="IMAGE", help="ci: image of this project")
    parser.add_argument("--webhook-secret", metavar="NAME", help="ci: Secret whose key `token` signs pushes")
    parser.add_argument("--all", action="store_true", help="export: every image that is built")
    parser.add_argument(
        "--force",
        action="store_true",
        help="rm: even while pods use it; import: instead of another recipe of the name",
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="data directory (default: the context's platform's)")
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    for flag, actions in FLAGS.items():
        if getattr(args, flag) and args.action not in actions:
            why = f"it is for image {' and '.join(actions)}"
            raise UsageError(
                f"image {args.action} takes no --{flag.replace('_', '-')}", why=why, next="pdc image --help"
            )
    return ACTIONS[args.action](session, args)


# Building


def run_build(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.STRUCTURED))
    data = data_of(session)
    if args.on_cluster:
        return _build_on_cluster(session, args, data)
    if given := [flag for flag in ON_CLUSTER if getattr(args, flag)]:
        raise UsageError(f"--{given[0].replace('_', '-')} is for builds on a cluster", next="add --on-cluster")
    if args.filename is not None:
        if args.names:
            raise UsageError("either NAME or -f", why="a file says what it is with -t NAME", next="pdc image --help")
        built = [_build_file(session, args, data)]
    elif args.tag or not args.names:
        raise UsageError("what is to be built?", why="NAME of a recipe, or -f FILE -t NAME", next="pdc image ls")
    else:
        store = store_of(data)
        built = [build_named(session, store, name) for name in args.names]
    if fmt.name:
        output.print_report(session, "ImageBuild", {"items": built})
    return OK


def _build_on_cluster(session: Session, args: argparse.Namespace, data: Path) -> int:
    from paddlecloud.cli.commands import image_on_cluster

    fmt = output.parse_format(args.output, ("", *output.STRUCTURED))
    image_on_cluster.check(args)
    if args.filename is not None and not args.names:
        recipe, store = recipes.read(args.filename, args.tag or [args.push])[0], store_of(data)
    elif len(args.names) == 1 and args.filename is None:
        store = store_of(data)
        recipe = known_recipe(store, args.names[0])
    else:
        raise UsageError("what is to be built?", why="one NAME of a recipe, or -f FILE", next="pdc image --help")
    made = image_on_cluster.build(session, _plan(store, recipe), args)
    if fmt.name:
        output.print_report(session, "ImagePush", made)
    else:
        session.print(f"{made['image']}@{made['digest']}")
    return OK


def _build_file(session: Session, args: argparse.Namespace, data: Path) -> dict[str, Any]:
    """Built first, from a separate copy beside the others; it takes its place only when that went well."""
    recipe, body = recipes.read(args.filename, args.tag)
    name = recipe.names[0]
    if recipe.folder.is_relative_to(recipes.folder_of(data)) and not args.tag:
        return build_named(session, store_of(data), name)  # it lies where the platform finds it already
    recipes.check_free(data, name)
    with recipes.staging(data) as staging:
        staged = recipes.stage(recipe, body, staging)
        store = ImageStore(folders=[recipes.folder_of(data), staging])
        report = build_named(session, store, name, written=recipe.path)
        place = recipes.register(staged, data)
    warn_if_hidden(session, data, name, place)
    return {**report, "recipe": str(place)}


def warn_if_hidden(session: Session, data: Path, name: str, place: Path) -> None:
    found = store_of(data).find(name)
    if found is None or found.folder != place:
        session.warn(f"another recipe answers for {name}: {found.path if found else 'none'}")


def build_named(session: Session, store: ImageStore, name: str, *, written: Path | None = None) -> dict[str, Any]:
    """`written` is the file that the user mends, where the store has a copy of it."""
    import asyncio

    ready = store.resolve(name) is not None
    began = time.monotonic()
    quiet = bool(session.args.output)
    try:
        with progress.working(f"building {name}", quiet=quiet) as show:
            environment = asyncio.run(store.build(name, progress=show))
    except ImageUnavailable as error:
        raise _failure(store, name, error, written=written, shown=not quiet) from error
    recipe = store.find(name)
    if not quiet:
        said = "is the host's own: nothing to build" if recipe is None else "is up to date" if ready else ""
        session.print(f"{name} {said or f'built in {time.monotonic() - began:.1f} s'}")
    path = str(recipe.path) if recipe else ""
    return {"name": name, "id": environment.image_id, "recipe": path, "built": recipe is not None and not ready}


def _failure(store: ImageStore, name: str, error: ImageUnavailable, *, written: Path | None, shown: bool) -> CliError:
    """`shown` says that the lines of the build were printed."""
    cause = error.__cause__
    recipe = store.find(name)
    if isinstance(cause, RecipeError):
        why = str(cause).replace(str(recipe.path), str(written)) if written and recipe else str(cause)
        return CliError(f"cannot build {name}", why=why, next="mend the recipe", exit_code=INVALID)
    if isinstance(cause, BuildError):
        path = written or (recipe.path if recipe else name)
        return CliError(
            f"cannot build {name}",
            why=cause.summary if shown else str(cause),
            next=f"mend {path} and build again; without a network: pdc image import FILE",
            exit_code=ERROR,
            reason="Build",
        )
    unknown = recipe is None and not missing_package(name)
    meant = question(name, known_names(store)) if unknown else ""
    return CliError(
        f"cannot build {name}",
        why=f"{error}; {meant}" if meant else str(error),
        next="pdc image ls",
        exit_code=NOT_FOUND if recipe is None else ERROR,
    )


# Other forms


def run_dockerfile(session: Session, args: argparse.Namespace) -> int:
    from paddlecloud.local.images import dockerfile

    if len(args.names) != 1:
        raise UsageError("which image?", why="one NAME of a recipe", next="pdc image ls")
    (name,) = args.names
    store = store_of(data_of(session))
    plan = _plan(store, known_recipe(store, name))
    if args.to is None:
        session.print(dockerfile.render(plan, on=args.base or "").rstrip("\n"))
        return OK
    if args.to.exists() and any(args.to.iterdir()) and not (args.to / dockerfile.FILE).exists():
        raise CliError(f"{args.to} holds other files", next="name a new or an empty folder", exit_code=CONFLICT)
    path = dockerfile.write(plan, args.to, on=args.base or "")
    session.print(f"{path} written; next: docker build --tag {name} {args.to}")
    return OK


def _plan(store: ImageStore, recipe: Recipe) -> ImagePlan:
    try:
        return store.plan(recipe)
    except (RecipeError, ImageUnavailable) as error:
        raise CliError(f"cannot read the recipe of {recipe.names[0]}", why=str(error), exit_code=INVALID) from error


# Looking


def run_ls(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", "wide", "name", *output.STRUCTURED))
    store = store_of(data_of(session))
    images = store.overview()
    for name in args.names:
        if name not in known_names(store):
            raise no_recipe(store, name)
    images = [image for image in images if not args.names or image.name in args.names]
    for error in store.recipe_errors():
        session.warn(str(error))
    if fmt.name == "name":
        for image in images:
            session.print(image.name)
        return OK
    if not fmt.is_table:
        output.print_report(session, "ImageList", {"items": [_record(image) for image in images]})
        return OK
    wide = fmt.name == "wide"
    columns = ["Name", "State", "Size", "Id", *(["Recipe"] if wide else []), "Stands For"]
    rows = [_row(image) + ([image.path or None] if wide else []) + [image.stands_for or "-"] for image in images]
    session.print(table.render(columns, rows))
    return OK


def _record(image: ImageInfo) -> dict[str, Any]:
    body = {"name": image.name, "id": image.image_id, "state": image.state, "sizeBytes": image.size}
    return {**body, "recipe": image.path, "standsFor": image.stands_for}


def _row(image: ImageInfo) -> list[object]:
    short = image.image_id.removeprefix("sha256:")[:12]
    return [image.name, image.state, progress.size(image.size) if image.size else "-", short or "-"]


# Removing


def run_rm(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.STRUCTURED))
    if not args.names:
        raise UsageError("which image?", next="pdc image ls")
    data = data_of(session)
    store = store_of(data)
    chosen = [(name, known_recipe(store, name)) for name in args.names]
    if not args.force:
        for name, _ in chosen:
            _check_unused(data, store, name)
    session.confirm(f"delete what was built for {', '.join(args.names)}?")
    items = []
    for name, recipe in chosen:
        removed = store.remove(name)
        forgotten = recipes.unregister(recipe)
        items.append({"name": name, "removed": removed, "unregistered": forgotten})
        if not fmt.name:
            text = "removed" if removed or forgotten else "was not built"
            session.print(f"{name} {text}")
    if fmt.name:
        output.print_report(session, "ImageRemoval", {"items": items})
    return OK


def known_recipe(store: ImageStore, name: str) -> Recipe:
    recipe = store.find(name)
    if recipe is None:
        raise no_recipe(store, name)
    return recipe


def known_names(store: ImageStore) -> list[str]:
    """Of images that have a recipe; also what completion offers."""
    return [image.name for image in store.overview()]


def no_recipe(store: ImageStore, name: str) -> CliError:
    meant = missing_package(name) or question(name, known_names(store))
    return CliError(f"there is no recipe for {name}", why=meant, next="pdc image ls", exit_code=NOT_FOUND)


def _check_unused(data: Path, store: ImageStore, name: str) -> None:
    """Deleting an environment under a running program breaks it in ways nobody would trace back to here."""
    environment = store.resolve(name)
    found = endpoint.find(data)
    if environment is None or found is None or not found.alive:
        return
    from paddlecloud.cli.objects.api import connect
    from paddlecloud.kube.resource import PODS

    api = connect(kubeconfig=str(data / "kubeconfig"), context=None)
    with attempting("ask which pods use it"):
        pods = api.do(api.client.list(PODS, None, limit=500)).items
    api.close()
    users = []
    for pod in pods:
        status = pod.get("status") or {}
        ids = {entry.get("imageID") for entry in status.get("containerStatuses") or ()}
        if environment.image_id in ids and status.get("phase") not in ("Succeeded", "Failed"):
            users.append(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}")
    if users:
        raise CliError(
            f"{name} is in use", why=f"by {', '.join(users[:5])}", next="--force deletes it anyway", exit_code=CONFLICT
        )


def store_of(data: Path) -> ImageStore:
    return ImageStore(folders=[recipes.folder_of(data)])


# Carrying


def run_export(session: Session, args: argparse.Namespace) -> int:
    from paddlecloud.cli.commands import image_bundle

    return image_bundle.run_export(session, args)


def run_import(session: Session, args: argparse.Namespace) -> int:
    from paddlecloud.cli.commands import image_bundle

    return image_bundle.run_import(session, args)


def run_ci(session: Session, args: argparse.Namespace) -> int:
    from paddlecloud.cli.commands import image_ci

    return image_ci.run(session, args)


ACTIONS = {
    "build": run_build,
    "dockerfile": run_dockerfile,
    "ls": run_ls,
    "rm": run_rm,
    "export": run_export,
    "import": run_import,
    "ci": run_ci,
}
ON_CLUSTER = ("push", "push_secret", "plain_http", "pip_index", "builder")
"""Flags of a build on a cluster alone."""
FLAGS = {
    "filename": ("build",),
    "tag": ("build",),
    "on_cluster": ("build",),
    **dict.fromkeys(ON_CLUSTER, ("build", "ci")),
    "base": ("dockerfile",),
    "tool": ("ci",),
    "webhook_secret": ("ci",),
    "to": ("dockerfile", "export"),
    "all": ("export",),
    "force": ("rm", "import"),
}
"""The actions that take each flag."""
