"""The programs of the cluster, built from their published Go modules and kept by content.

What a build consists of is hashed: module versions and checksums, our few lines of Go, the flags. The same hash is not
built twice, also not by two processes at once, and a warm cache needs no compiler. An interrupted build left only a
temporary folder, which the next one replaces. Binaries are static, so a container image of one is the file alone.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tools import go as golang
from tools import kfp_backend

from . import kfp_sources
from .errors import HarnessError, with_log
from .layout import ARGO, ENGINES, KUBERNETES

_VERSION = "k8s.io/component-base/version"
_KUBERNETES_VERSION = {
    "gitVersion": f"v{KUBERNETES}",
    "gitMajor": KUBERNETES.split(".")[0],
    "gitMinor": KUBERNETES.split(".")[1],
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
}


@dataclass(frozen=True, slots=True)
class Completed:
    """A module that is built from a copy, because its zip lacks files that the repository has or makes."""

    module: str
    files: tuple[tuple[str, str], ...]
    """Each with the file of the module that is copied to it."""


@dataclass(frozen=True, slots=True)
class Engine:
    """Packages that are built together; each gives a binary named after its last path element."""

    name: str
    packages: tuple[str, ...]
    stamps: tuple[tuple[str, str], ...] = ()
    """Variables set at link time, where a program reports its version."""
    manifests: tuple[tuple[str, str], ...] = ()
    """Files of modules (module, pattern) kept beside the binaries: what upstream would have you apply."""
    module: str = field(default=".", repr=False)
    """The folder, below that of all engines, whose go.mod decides."""
    completed: Completed | None = field(default=None, repr=False)
    generated: kfp_sources.Generated | None = field(default=None, repr=False)

    @property
    def binaries(self) -> list[str]:
        return [package.rpartition("/")[2] for package in self.packages]


_CMD = "k8s.io/kubernetes/cmd"
_PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl")
_VOLCANO = "volcano.sh/volcano"
_OS = "workflow/executor/osspecific"
_ARGO = "github.com/argoproj/argo-workflows/v3"
_KFP = kfp_backend.MODULE
_SERVING = ("controller", "webhook", "autoscaler", "activator", "queue")
_TEKTON = "github.com/tektoncd"
_TEKTON_PIPELINE = ("controller", "webhook", "entrypoint", "nop", "workingdirinit", "sidecarlogresults")
_TEKTON_TRIGGERS = ("controller", "webhook", "eventlistenersink", "interceptors")
ENGINE_TABLE: dict[str, Engine] = {
    engine.name: engine
    for engine in (
        Engine("pause", ("./pause",)),
        Engine("etcd", ("./etcd",)),
        Engine(
            "kubernetes",
            tuple(f"{_CMD}/{name}" for name in _PROGRAMS),
            tuple((f"{_VERSION}.{name}", value) for name, value in _KUBERNETES_VERSION.items()),
        ),
        Engine("coredns", ("./coredns",)),
        Engine(
            "volcano",
            tuple(f"{_VOLCANO}/cmd/{name}" for name in ("scheduler", "controller-manager", "webhook-manager")),
            ((f"{_VOLCANO}/pkg/version.Version", "v1.14.1"),),
            ((_VOLCANO, "installer/volcano-development.yaml"),),
        ),
        Engine(
            "knative",
            (
                *(f"knative.dev/serving/cmd/{name}" for name in _SERVING),
                "knative.dev/net-kourier/cmd/kourier",
            ),
            manifests=(
                ("knative.dev/serving", "config/core/**/*.yaml"),
                ("knative.dev/networking", "config/*.yaml"),
                ("knative.dev/caching", "config/*.yaml"),
                ("knative.dev/net-kourier", "config/*.yaml"),
            ),
        ),
        Engine("juicefs-csi", ("github.com/juicedata/juicefs-csi-driver/cmd", "./registrar")),
        Engine(
            "argo",
            tuple(f"{_ARGO}/cmd/{name}" for name in ("argo", "argoexec", "workflow-controller")),
            (
                (f"{_ARGO}.version", ARGO),
                (f"{_ARGO}.gitTag", ARGO),
                (f"{_ARGO}.gitCommit", "66e32e5cc367f223e2ecf4fbe852b95eaed83034"),
                (f"{_ARGO}.gitTreeState", "clean"),
            ),
            tuple((_ARGO, f"{folder}/**/*.yaml") for folder in ("manifests", "examples", "test/e2e")),
            module="argo",
            completed=Completed(
                _ARGO,
                (
                    # A link in the repository, and zips of modules hold no links.
                    (f"{_OS}/signal_linux.go", f"{_OS}/signal_darwin.go"),
                    # The server's pages, made by npm; the server belongs to the CLI, and nobody starts it here.
                    ("ui/dist/app/index.html", "ui/src/index.html"),
                ),
            ),
        ),
        Engine(
            "kfp",
            (
                f"{_KFP}/backend/src/apiserver",
                f"{_KFP}/backend/src/agent/persistence",
                f"{_KFP}/backend/src/crd/controller/scheduledworkflow",
                f"{_KFP}/backend/src/v2/cmd/driver",
                f"{_KFP}/backend/src/v2/cmd/launcher-v2",
            ),
            manifests=tuple((_KFP, name) for name in (*kfp_backend.MANIFESTS, kfp_backend.CONFIG)),
            module="kfp",
            generated=kfp_sources.GENERATED,
        ),
        Engine(
            "tekton-pipelines",
            tuple(f"{_TEKTON}/pipeline/cmd/{name}" for name in _TEKTON_PIPELINE),
            manifests=((f"{_TEKTON}/pipeline", "config/**/*.yaml"),),
            module="tekton",
        ),
        Engine(
            "tekton-triggers",
            tuple(f"{_TEKTON}/triggers/cmd/{name}" for name in _TEKTON_TRIGGERS),
            manifests=((f"{_TEKTON}/triggers", "config/**/*.yaml"),),
            module="tekton",
        ),
    )
}
BASE = ("pause", "etcd", "kubernetes", "coredns")

_MANIFESTS = "manifests"
_FLAGS = ("-trimpath", "-buildvcs=false", "-mod=readonly", "-gcflags=all=-dwarf=false")


def key_of(engine: Engine, *, sources: Path = ENGINES) -> str:
    """The address of what the engine would be built to."""
    digest = hashlib.sha256(repr((engine, _FLAGS)).encode())
    for more in (engine.completed, engine.generated):
        if more is not None:
            digest.update(repr(more).encode())
    local = [sources / package for package in engine.packages if package.startswith("./")]
    files = [
        sources / engine.module / "go.mod",
        sources / engine.module / "go.sum",
        *(file for folder in local for file in sorted(folder.glob("*.go"))),
        *(file for file in sorted((sources / engine.module).rglob("*")) if engine.generated and file.is_file()),
    ]
    for file in files:
        digest.update(file.name.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]


class Builder:
    """Builds engines into a cache folder. `say` gets a line for everything that takes time."""

    def __init__(self, cache: Path, *, say: Callable[[str], None]) -> None:
        self._cache = cache
        self._say = say

    def ensure(self, names: Iterable[str]) -> dict[str, Path]:
        """Binaries by name, built where the cache has none."""
        binaries: dict[str, Path] = {}
        for name in names:
            if name not in ENGINE_TABLE:
                raise HarnessError(f"no engine is called {name}, only {', '.join(ENGINE_TABLE)}", reason="NoEngine")
            engine = ENGINE_TABLE[name]
            folder = self._folder(engine)
            if not self.has(name):
                with self._alone(engine):
                    if not self.has(name):
                        self._build(engine, folder)
            binaries.update({file.name: file for file in sorted(folder.iterdir()) if file.is_file()})
        return binaries

    def has(self, name: str) -> bool:
        """Whether the cache holds an engine, whole."""
        engine = ENGINE_TABLE[name]
        return all((self._folder(engine) / binary).is_file() for binary in engine.binaries)

    def binary(self, name: str, program: str) -> Path:
        """Where a program of an engine lies, or will lie."""
        return self._folder(ENGINE_TABLE[name]) / program

    def manifests(self, name: str) -> Path:
        """The folder of an engine's manifests, a subfolder for each module."""
        return self._folder(ENGINE_TABLE[name]) / _MANIFESTS

    @contextmanager
    def _alone(self, engine: Engine) -> Iterator[None]:
        """One build of an engine at a time, for test runs that begin together. The lock goes with its process."""
        self._cache.mkdir(parents=True, exist_ok=True)
        with (self._cache / f"{engine.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _folder(self, engine: Engine) -> Path:
        return self._cache / f"{engine.name}-{key_of(engine)}"

    def _build(self, engine: Engine, folder: Path) -> None:
        try:
            go = golang.find_or_fetch()
        except golang.NoGo as error:
            raise HarnessError(f"the cluster cannot be built: {error}", reason="NoGo") from error
        self._say(f"building {engine.name} (once; minutes for kubernetes, with downloads on the first run)")
        began = time.monotonic()
        log = self._cache / f"{engine.name}.log"
        unfinished = self._cache / f".{folder.name}.{os.getpid()}"
        for leftover in self._cache.glob(f".{engine.name}-*"):
            shutil.rmtree(leftover)
        unfinished.mkdir()
        links = " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in engine.stamps)])
        command = [go, "build", *_FLAGS, "-ldflags", links, "-o", f"{unfinished}/", *engine.packages]
        with log.open("wb") as output, _sources(go, engine, self._cache) as place:
            done = subprocess.run(
                command, cwd=place, env={**os.environ, "CGO_ENABLED": "0"}, stdout=output, stderr=output
            )
        if done.returncode != 0:
            shutil.rmtree(unfinished)
            raise HarnessError(
                with_log(f"go could not build {engine.name}; correct the cause and run this again", log),
                reason="BuildFailed",
            )
        for module, pattern in engine.manifests:
            _copy_files(module_folder(go, module, ENGINES / engine.module), pattern, unfinished / _MANIFESTS / module)
        shutil.rmtree(folder, ignore_errors=True)  # there only if somebody took a part of it away
        unfinished.rename(folder)
        self._forget_older(engine, folder)
        self._say(f"built {engine.name} in {time.monotonic() - began:.0f} s")

    def _forget_older(self, engine: Engine, current: Path) -> None:
        """Keep one other build of an engine, for those who move between two branches."""
        others = [path for path in self._cache.glob(f"{engine.name}-*") if path.is_dir() and path != current]
        for path in sorted(others, key=lambda path: path.stat().st_mtime)[:-1]:
            shutil.rmtree(path)


@contextmanager
def _sources(go: str, engine: Engine, cache: Path) -> Iterator[Path]:
    """The folder to build in: the engine's module, or a copy of it that replaces what has to be completed."""
    module = ENGINES / engine.module
    if engine.completed is None and engine.generated is None:
        yield module
        return
    with tempfile.TemporaryDirectory(prefix=f".{engine.name}-", dir=cache) as folder:
        if engine.generated is not None:
            kfp_sources.write(engine.generated, go, module, Path(folder), cache.parent)
            yield Path(folder)
            return
        copy = Path(folder, "completed")
        shutil.copytree(module_folder(go, engine.completed.module, module), copy, copy_function=shutil.copyfile)
        for path, source in engine.completed.files:
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(copy / source, copy / path)
        for name in ("go.mod", "go.sum"):
            shutil.copyfile(module / name, Path(folder, name))
        replaced = [go, "mod", "edit", f"-replace={engine.completed.module}=./{copy.name}"]
        subprocess.run(replaced, cwd=folder, check=True)
        yield Path(folder)


def module_folder(go: str, module: str, place: Path) -> Path:
    """Where a module lies, read-only, in Go's own cache, at the version that the build uses; downloaded if need be."""
    subprocess.run([go, "mod", "download", module], cwd=place, check=True)
    asked = [go, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module]
    return Path(subprocess.run(asked, cwd=place, capture_output=True, text=True, check=True).stdout.strip())


def _copy_files(source: Path, pattern: str, target: Path) -> None:
    for file in sorted(source.glob(pattern)):
        place = target / file.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(file.read_bytes())
