"""The programs of the cluster, built from their published Go modules and kept by content.

What a build consists of is hashed: module versions and checksums, our few lines of Go, the flags. The same hash is not
built twice, and a warm cache needs no compiler. An interrupted build left only a temporary folder, which the next one
replaces. Binaries are static, so a container image of one is the file alone.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tools import go as golang

from .errors import HarnessError, with_log
from .layout import ENGINES, KUBERNETES

_VERSION = "k8s.io/component-base/version"
_KUBERNETES_VERSION = {
    "gitVersion": f"v{KUBERNETES}",
    "gitMajor": KUBERNETES.split(".")[0],
    "gitMinor": KUBERNETES.split(".")[1],
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
}


@dataclass(frozen=True, slots=True)
class Engine:
    """Packages that are built together; each gives a binary named after its last path element."""

    name: str
    packages: tuple[str, ...]
    stamps: tuple[tuple[str, str], ...] = ()
    """Variables set at link time, where a program reports its version."""
    manifests: tuple[tuple[str, str], ...] = ()
    """Files of modules (module, pattern) kept beside the binaries: what upstream would have you apply."""

    @property
    def binaries(self) -> list[str]:
        return [package.rpartition("/")[2] for package in self.packages]


_CMD = "k8s.io/kubernetes/cmd"
_PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl")
_VOLCANO = "volcano.sh/volcano"
_SERVING = ("controller", "webhook", "autoscaler", "activator", "queue")
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
    )
}
BASE = ("pause", "etcd", "kubernetes", "coredns")

_MANIFESTS = "manifests"
_FLAGS = ("-trimpath", "-buildvcs=false", "-mod=readonly", "-gcflags=all=-dwarf=false")


def key_of(engine: Engine, *, sources: Path = ENGINES) -> str:
    """The address of what the engine would be built to."""
    digest = hashlib.sha256(repr((engine, _FLAGS)).encode())
    local = [sources / package for package in engine.packages if package.startswith("./")]
    files = [
        sources / "go.mod",
        sources / "go.sum",
        *(file for folder in local for file in sorted(folder.glob("*.go"))),
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
            if not all((folder / binary).is_file() for binary in engine.binaries):
                self._build(engine, folder)
            binaries.update({file.name: file for file in sorted(folder.iterdir()) if file.is_file()})
        return binaries

    def manifests(self, name: str) -> Path:
        """The folder of an engine's manifests, a subfolder for each module."""
        return self._folder(ENGINE_TABLE[name]) / _MANIFESTS

    def _folder(self, engine: Engine) -> Path:
        return self._cache / f"{engine.name}-{key_of(engine)}"

    def _build(self, engine: Engine, folder: Path) -> None:
        try:
            go = golang.find_or_fetch()
        except golang.NoGo as error:
            raise HarnessError(f"the cluster cannot be built: {error}", reason="NoGo") from error
        self._say(f"building {engine.name} (once; minutes for kubernetes, with downloads on the first run)")
        began = time.monotonic()
        self._cache.mkdir(parents=True, exist_ok=True)
        log = self._cache / f"{engine.name}.log"
        unfinished = self._cache / f".{folder.name}.{os.getpid()}"
        for leftover in self._cache.glob(f".{engine.name}-*"):
            shutil.rmtree(leftover)
        unfinished.mkdir()
        links = " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in engine.stamps)])
        command = [go, "build", *_FLAGS, "-ldflags", links, "-o", f"{unfinished}/", *engine.packages]
        with log.open("wb") as output:
            done = subprocess.run(
                command, cwd=ENGINES, env={**os.environ, "CGO_ENABLED": "0"}, stdout=output, stderr=output
            )
        if done.returncode != 0:
            shutil.rmtree(unfinished)
            raise HarnessError(
                with_log(f"go could not build {engine.name}; correct the cause and run this again", log),
                reason="BuildFailed",
            )
        for module, pattern in engine.manifests:
            _copy_files(go, module, pattern, unfinished / _MANIFESTS / module)
        shutil.rmtree(folder, ignore_errors=True)  # there only if somebody took a part of it away
        unfinished.rename(folder)
        self._forget_older(engine, folder)
        self._say(f"built {engine.name} in {time.monotonic() - began:.0f} s")

    def _forget_older(self, engine: Engine, current: Path) -> None:
        """Keep one other build of an engine, for whoever moves between two branches."""
        others = [path for path in self._cache.glob(f"{engine.name}-*") if path.is_dir() and path != current]
        for path in sorted(others, key=lambda path: path.stat().st_mtime)[:-1]:
            shutil.rmtree(path)


def _copy_files(go: str, module: str, pattern: str, target: Path) -> None:
    """Files of a module at the version the build uses; they lie read-only in Go's own cache."""
    asked = [go, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module]
    source = Path(subprocess.run(asked, cwd=ENGINES, capture_output=True, text=True, check=True).stdout.strip())
    for file in sorted(source.glob(pattern)):
        place = target / file.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(file.read_bytes())
