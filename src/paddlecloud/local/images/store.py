"""The images of this machine: which recipe or host image answers for a name, what is built, what can go.

Recipes come with packages (`shipped`) and from folders of the user's; a later folder wins over an earlier one, so
that a user can replace what is shipped. They are read again when a file changed, so adding one needs no restart.
"""

from __future__ import annotations

import functools
import os
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from paddlecloud.kube.nearest import question
from paddlecloud.local.images import library as project
from paddlecloud.local.images import shipped
from paddlecloud.local.images.build_progress import contents
from paddlecloud.local.images.environment import Environment, ImageProgram
from paddlecloud.local.images.errors import BuildError, ImageUnavailable, RecipeError
from paddlecloud.local.images.host import (
    HOST_IMAGES,
    find_python,
    hidden_folders,
    host_image,
    python_folder,
    stands_for,
)
from paddlecloud.local.images.layers import Layers, layers_of
from paddlecloud.local.images.plan import ImagePlan, plan_image
from paddlecloud.local.images.recipe import FILE, Recipe, find_recipes
from paddlecloud.local.images.reference import Reference, match_rank, parse_reference

MAX_BASES = 8
LOOK_PERIOD = 1.0


def default_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "paddlecloud" / "images"


@dataclass(frozen=True, slots=True)
class ImageInfo:
    """A line of `pdc image ls`."""

    name: str
    image_id: str
    state: str
    """`host`, `built` or `recipe` (not built yet)."""
    size: int
    path: str
    stands_for: str = ""


class ImageStore:
    def __init__(
        self,
        *,
        cache: Path | None = None,
        folders: Sequence[Path] = (),
    ) -> None:
        self.cache = cache or default_cache()
        self._folders = list(folders)
        self._layers = Layers(self.cache)
        self._asking = threading.Lock()
        self._looked = -LOOK_PERIOD
        self._stamp: tuple[tuple[str, int], ...] | None = None
        self._recipes: list[Recipe] = []
        self._errors: list[RecipeError] = []
        self._plans: dict[Path, ImagePlan] = {}
        self._found: dict[str, Recipe | None] = {}
        self._how_far: dict[str, str] = {}  # by the key of the packages that are installed now

    # Finding

    def recipes(self) -> list[Recipe]:
        """Looks at the folders again when the last look is a second old: pods ask for images in bursts."""
        now = time.monotonic()
        if now - self._looked >= LOOK_PERIOD:
            self.reload()
        return self._recipes

    def reload(self) -> None:
        """Read recipes again if any file beside one changed: also a script that an image carries makes a new image."""
        self._looked = time.monotonic()
        folders = [*shipped.folders(), *self._folders]  # a package may be installed while the platform runs
        stamp = tuple(
            (str(path), path.stat().st_mtime_ns)
            for folder in folders
            for recipe in sorted(folder.glob(f"**/{FILE}"))
            for path in sorted(recipe.parent.rglob("*"))
        )
        if stamp != self._stamp:
            self._recipes, self._errors = find_recipes(folders)
            self._plans.clear()
            self._found.clear()
            self._stamp = stamp

    def recipe_errors(self) -> list[RecipeError]:
        self.recipes()
        return self._errors

    def find(self, image: str) -> Recipe | None:
        """The recipe that answers best; among equals the one from the later folder. Remembered: pods come in gangs."""
        recipes = self.recipes()
        if image not in self._found:
            self._found[image] = self._search(image, recipes)
        return self._found[image]

    def _search(self, image: str, recipes: Sequence[Recipe]) -> Recipe | None:
        wanted = parse_reference(image)
        found = self._best(wanted, recipes)
        if found is None and wanted.digest:
            # The id of an environment is a digest of all that is in it: a reference to it gets exactly that.
            same = self._best(wanted.without_digest(), recipes)
            plan = self._usable_plan(same) if same else None
            found = same if plan and plan.image_id == wanted.digest else None
        return found

    def _best(self, wanted: Reference, recipes: Sequence[Recipe]) -> Recipe | None:
        best: tuple[int, Recipe] | None = None
        for recipe in recipes:
            ranks = [rank for name in recipe.references if (rank := match_rank(name, wanted)) is not None]
            if ranks and (best is None or min(ranks) <= best[0]):
                best = (min(ranks), recipe)
        return best[1] if best else None

    def resolve(self, image: str) -> Environment | None:
        """The environment of an image that is ready to use; None when it must be built first, or nobody can."""
        recipe = self.find(image)
        if recipe is None:
            try:
                return self._host_image(image)
            except ImageUnavailable:
                return None
        try:
            plan = self.plan(recipe)
        except (RecipeError, ImageUnavailable):
            return None
        return self._environment(plan) if self._layers.is_built(plan) else None

    def program(self, image: str) -> ImageProgram | None:
        """What a container of an image runs by itself, also before the image is built; None where no recipe answers.

        Threads that decide about workflows ask this and the next question.
        """
        with self._asking:
            recipe = self.find(image)
            try:
                if recipe is None:
                    found = self._host_image(image)
                    return ImageProgram(found.entrypoint, found.cmd) if found else None
                plan = self.plan(recipe)
            except (RecipeError, ImageUnavailable):
                return None
            return ImageProgram(plan.entrypoint, plan.cmd)

    def obstacle(self, image: str) -> str:
        """Why no pod can have an image, and what to do; empty where a recipe, or this machine, answers for it."""
        with self._asking:
            if self.find(image) is not None:
                return ""
            try:
                return "" if self._host_image(image) else self._no_recipe(image)
            except ImageUnavailable as error:
                return str(error)

    def _host_image(self, image: str) -> Environment | None:
        reference = parse_reference(image)
        found = host_image(reference.without_digest(), self.cache)
        return found if found and reference.digest in ("", found.image_id) else None

    def plan(self, recipe: Recipe, depth: int = 0) -> ImagePlan:
        """What a recipe comes to on its bases. Raises `RecipeError` and `ImageUnavailable`."""
        if recipe.path not in self._plans:
            self._plans[recipe.path] = self._make_plan(recipe, depth)
        return self._plans[recipe.path]

    def _make_plan(self, recipe: Recipe, depth: int) -> ImagePlan:
        if depth > MAX_BASES:
            raise RecipeError(f"{recipe.path}: its bases go in a circle")
        base: ImagePlan | None = None
        wanted = recipe.python
        if recipe.base:
            parent = self.find(recipe.base)
            reference = parse_reference(recipe.base)
            if parent is not None and parent.path != recipe.path:
                base = self.plan(parent, depth + 1)
            elif reference.name == "python":
                wanted = wanted or ".".join(reference.tag.split("-")[0].split(".")[:2])
            elif reference.name not in HOST_IMAGES:
                raise RecipeError(f"{recipe.path}: {self._without_base(recipe)}")
        interpreter = base.python if base and not wanted else find_python(wanted if wanted[:1].isdigit() else "")
        if interpreter is None:
            raise ImageUnavailable(
                f"{recipe.path}: this machine has no python{wanted}; install it, or change python there"
            )
        library = project.digest() if recipe.project else ""
        return plan_image(recipe, base, interpreter=interpreter, library=library)

    def _without_base(self, recipe: Recipe) -> str:
        meant = self.meant(recipe.base, other_than=recipe)
        text = f"no recipe answers for its base {recipe.base}"
        return shipped.missing_package(recipe.base) or (f"{text}; {meant}" if meant else text)

    def meant(self, image: str, *, other_than: Recipe | None = None) -> str:
        """The question for the name of a recipe that is like a name without one; empty where none is near."""
        recipes = (recipe for recipe in self.recipes() if other_than is None or recipe.path != other_than.path)
        return question(image, (name for recipe in recipes for name in recipe.names))

    def _environment(self, plan: ImagePlan) -> Environment:
        path: tuple[str, ...] = ()
        env = dict(plan.env)
        readonly: tuple[Path, ...] = ()
        root: Path | None = None
        if packages := plan.packages_key:
            venv = self._layers.path("packages", packages) / "venv"
            path, readonly = (str(venv / "bin"),), (venv,)
            env.setdefault("VIRTUAL_ENV", str(venv))
        else:
            folder = python_folder(plan.python, self.cache)
            path, readonly = (str(folder),), (folder,)
        if files := plan.files_key:
            root = self._layers.path("files", files) / "root"
        library = project.folder(self.cache) if plan.library else None
        if library is not None:
            readonly = (*readonly, library)
            env["PYTHONPATH"] = ":".join(filter(None, (str(library), env.get("PYTHONPATH"))))
        for kind, key in layers_of(plan):
            _touch(self._layers.path(kind, key))
        return Environment(
            image_id=plan.image_id,
            path=path,
            env=env,
            entrypoint=plan.entrypoint,
            cmd=plan.cmd,
            workdir=plan.workdir,
            user=plan.user,
            root=root,
            readonly=tuple(dict.fromkeys((*readonly, *hidden_folders(plan.python, self.cache)))),
            library=library,
            preload=plan.preload,
            labels=plan.labels,
            stands_for=plan.stands_for,
        )

    # Making

    async def prepare(self, image: str, *, policy: str = "IfNotPresent") -> Environment:
        """The environment of an image, built now if need be. Raises `ImageUnavailable`."""
        if (ready := self.resolve(image)) is not None:
            return ready
        if policy == "Never":
            raise ImageUnavailable(
                f'Container image "{image}" is not present with pull policy of Never', reason="ErrImageNeverPull"
            )
        return await self.build(image)

    def how_far(self, image: str) -> str:
        """What is installed for an image that is not built yet and how far that is; empty where nothing is."""
        recipe = self.find(image)
        plan = self._usable_plan(recipe) if recipe else None
        if plan is None or not plan.pip or self._layers.is_built(plan):
            return ""
        return self._how_far.get(plan.packages_key) or contents(plan.pip)

    async def build(self, image: str, *, progress: Callable[[str], None] = lambda line: None) -> Environment:
        from paddlecloud.local.images.builder import Builder  # not for those who only look: it is slow to import

        self.reload()
        recipe = self.find(image)
        if recipe is None:
            host = self._host_image(image)
            if host is None:
                raise ImageUnavailable(self._no_recipe(image))
            return host

        try:
            plan = self.plan(recipe)
            key = plan.packages_key
            how_far = functools.partial(self._how_far.__setitem__, key)
            try:
                await Builder(self._layers).build(plan, progress=progress, how_far=how_far)
            finally:
                self._how_far.pop(key, None)
        except (RecipeError, BuildError) as error:
            raise ImageUnavailable(
                f"image {image}: {error}\nTo see the whole build: pdc image build {image}"
            ) from error
        return self._environment(plan)

    def _no_recipe(self, image: str) -> str:
        if parse_reference(image).digest:
            return self._other_digest(image)
        if missing := shipped.missing_package(image):
            return missing
        broken = [str(error) for error in self.recipe_errors()]
        note = f" ({len(broken)} recipes cannot be read: {broken[0]})" if broken else ""
        base = _paddle_base(image)
        meant = "" if base else self.meant(image)
        asked = f": {meant}" if meant else "."
        first = f' that begins with "base: {base}"' if base else ""
        return (
            f'no recipe answers for image "{image}"{note}{asked} Pods run as processes of this machine, so an image '
            f"needs a recipe: write one{first}, then: pdc image build -f {FILE} -t {image}"
        )

    def _other_digest(self, image: str) -> str:
        """A recipe that answers for the name alone is not proven to be what the digest names."""
        digest = parse_reference(image).digest
        name = image.strip().removesuffix(f"@{digest}")
        recipe = self.find(name)
        plan = self._usable_plan(recipe) if recipe else None
        host = None if recipe else self._host_image(name)
        own = plan.image_id if plan else host.image_id if host else ""
        if not own:
            known = shipped.missing_package(name) or f"no recipe answers for {name} either"
        elif recipe:
            known = f"ask for {name}, or for {name}@{own}, the environment that {recipe.path} makes of it"
        else:
            known = f"ask for {name}: the programs of this machine"
        return (
            f'image "{image}" is asked for by digest, and no recipe declares that digest. Images are made from recipes '
            f"here, not pulled: {known}. If a recipe of yours makes the same, list {name}@{digest} in its names"
        )

    # Housekeeping

    def overview(self) -> list[ImageInfo]:
        lines = []
        for recipe in self.recipes():
            try:
                plan = self.plan(recipe)
            except (RecipeError, ImageUnavailable) as error:
                lines += [ImageInfo(name, "", f"broken: {error}", 0, str(recipe.path)) for name in recipe.names]
                continue
            built = self._layers.is_built(plan)
            size = self._layers.size(plan) if built else 0
            state = "built" if built else "recipe"
            path = str(recipe.path)
            lines += [ImageInfo(name, plan.image_id, state, size, path, plan.stands_for) for name in recipe.names]
        for name in HOST_IMAGES:
            lines.append(ImageInfo(name, "", "host", 0, "", stands_for(name)))
        return lines

    def remove(self, image: str) -> bool:
        """Delete what was built for an image, as far as no other built image shares it; False when nothing was."""
        recipe = self.find(image)
        if recipe is None:
            return False
        doomed = set(layers_of(self.plan(recipe)))
        for other in self.recipes():
            if other.path != recipe.path and (plan := self._usable_plan(other)) and self._layers.is_built(plan):
                doomed -= set(layers_of(plan))
        removed = False
        for kind, key in doomed:
            layer = self._layers.path(kind, key)
            removed = removed or layer.exists()
            shutil.rmtree(layer, ignore_errors=True)
        return removed

    def collect_garbage(self, *, max_age: float, in_use: Sequence[str] = ()) -> list[Path]:
        """Delete layers that no recipe gives any more and that nobody used for `max_age` seconds.

        `in_use` are folders that running containers work in: their layers stay, whatever their recipe became.
        """
        kept = set()
        for recipe in self.recipes():
            if plan := self._usable_plan(recipe):
                kept.update(layers_of(plan))
        gone = []
        for kind, layer in self._layers.all():
            if (kind, layer.name) in kept or any(Path(folder).is_relative_to(layer) for folder in in_use):
                continue
            if time.time() - _last_used(layer) > max_age:
                shutil.rmtree(layer, ignore_errors=True)
                gone.append(layer)
        for log in self._layers.logs():
            if time.time() - _last_used(log) > max_age:
                log.unlink(missing_ok=True)
        return gone

    def _usable_plan(self, recipe: Recipe) -> ImagePlan | None:
        try:
            return self.plan(recipe)
        except (RecipeError, ImageUnavailable):
            return None


def _touch(layer: Path) -> None:
    """Note the use of a layer, for garbage collection; a read-only cache is no obstacle."""
    try:
        os.utime(layer)
    except OSError:
        pass  # then it was built by somebody else, who decides when it goes


def _last_used(layer: Path) -> float:
    try:
        return layer.stat().st_mtime
    except OSError:
        return 0.0


def _paddle_base(image: str) -> str:
    """The recipe to build upon for a published image of Paddle that has none; empty for any other image."""
    found = parse_reference(image)
    if not found.repository.endswith("paddlepaddle/paddle"):
        return ""
    return "paddlecloud/paddle:2.6" if found.tag.startswith("2.") else "paddlecloud/paddle:3.3"
