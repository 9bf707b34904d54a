"""The SDK as blocking calls: what scripts and notebooks use. Each call runs the asynchronous core in the client's own
loop (`portal`); nothing is decided here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from paddlecloud.kube.config import Config, load
from paddlecloud.kube.resource import Object
from paddlecloud.sdk.checking import checked, checked_call
from paddlecloud.sdk.core import AsyncClient
from paddlecloud.sdk.handles import AsyncHandle, AsyncJob, AsyncService, Objects
from paddlecloud.sdk.labels import Labels
from paddlecloud.sdk.manifest import ManifestSource
from paddlecloud.sdk.models import PathLike
from paddlecloud.sdk.new_version import BlockingNewVersion
from paddlecloud.sdk.portal import Portal
from paddlecloud.sdk.sync_handles import Handle as Handle  # also for those who know them by this module
from paddlecloud.sdk.sync_handles import Job as Job
from paddlecloud.sdk.sync_handles import Service as Service


@checked
class Jobs:
    """`client.jobs`: PaddleJobs."""

    def __init__(self, portal: Portal, core: AsyncClient) -> None:
        self._portal = portal
        self._core = core.jobs

    def run(
        self,
        program: str | Path | Sequence[str | Path],
        *arguments: str | float | Path,
        name: str | None = None,
        workers: int | None = None,
        ps: int = 0,
        elastic: tuple[int, int] | None = None,
        image: str | None = None,
        gpus: int = 0,
        cpu: str | float = "",
        memory: str = "",
        env: Mapping[str, str | float] | None = None,
        volumes: Iterable[str] = (),
        retries: int = 0,
        directory: str | Path | None = None,
        namespace: str | None = None,
    ) -> Job:
        """Train without YAML: `run("train.py", workers=4)`, `run(["python", "-m", "pkg.fit"])`.

        On the embedded platform the program runs in `directory` (the current one); elsewhere it must be in `image`.
        `volumes` are `SRC:PATH[:ro]` with a directory or the name of a PersistentVolumeClaim as source.
        Raises `training.TrainingError` for what makes no job. The name is `<script>-<n>` unless given.
        """
        running = self._core.run(
            program,
            *arguments,
            name=name,
            workers=workers,
            ps=ps,
            elastic=elastic,
            image=image,
            gpus=gpus,
            cpu=cpu,
            memory=memory,
            env=env,
            volumes=volumes,
            retries=retries,
            directory=directory,
            namespace=namespace,
        )
        return Job(self._portal, self._portal.run(running))

    def apply(self, source: ManifestSource, *, namespace: str | None = None, force: bool = False) -> Job:
        """Like the client's `apply`, for a source that is a PaddleJob."""
        return Job(self._portal, self._portal.run(self._core.apply(source, namespace=namespace, force=force)))

    def get(self, name: str, *, namespace: str | None = None) -> Job:
        return Job(self._portal, self._portal.run(self._core.get(name, namespace=namespace)))

    def list(
        self, *, namespace: str | None = None, all_namespaces: bool = False, labels: Labels = None
    ) -> Objects[Job]:
        found = self._portal.run(self._core.list(namespace=namespace, all_namespaces=all_namespaces, labels=labels))
        return Objects(Job(self._portal, one) for one in found)

    def delete(
        self, name: str, *, namespace: str | None = None, wait: bool = False, timeout: float | None = None
    ) -> None:
        self._portal.run(self._core.delete(name, namespace=namespace, wait=wait, timeout=timeout))


@checked
class Models:
    """Versions of models, of a client. Files are in the store of the embedded platform, in the one that the
    environment variable PADDLECLOUD_MODEL_STORE names, or in `store` (`file:///FOLDER`, `s3://BUCKET/PREFIX`)."""

    def __init__(self, portal: Portal, core: AsyncClient) -> None:
        self._portal = portal
        self._core = core.models

    def push(
        self,
        name: str,
        path: PathLike,
        *,
        metrics: Mapping[str, float] | None = None,
        origin: Mapping[str, str] | None = None,
        description: str = "",
        framework: str = "",
        signature: Mapping[str, Any] | None = None,
        alias: str = "",
        reason: str = "",
        namespace: str | None = None,
        store: str = "",
    ) -> Handle:
        """A folder or a file as a new version `NAME:VERSION`; `NAME` alone takes the next number.

        The same files again are no failure; other files for a version that exists raise `VersionExists`. Inputs and
        outputs are read from Paddle and ONNX files; `signature` declares them, and raises `Refused` where files differ.
        """
        pushing = self._core.push(
            name, path, metrics=metrics, origin=origin, description=description, framework=framework,
            signature=signature, alias=alias, reason=reason, namespace=namespace, store=store,
        )  # fmt: skip
        return Handle(self._portal, self._portal.run(pushing))

    def new(
        self,
        name: str,
        *,
        metrics: Mapping[str, float] | None = None,
        description: str = "",
        framework: str = "",
        alias: str = "",
        reason: str = "",
        folder: PathLike | None = None,
        namespace: str | None = None,
        store: str = "",
    ) -> BlockingNewVersion:
        """For training programs: a folder to save into, `with client.models.new("ocr") as v:`, that is pushed when the
        block ends, as the next version; after an exception nothing is.

        Where it came from is recorded by itself: the PaddleJob with its image and command, the SampleSets, the run of a
        pipeline, the commit; and as metrics what was reported or written with VisualDL, unless `metrics` has it. Of the
        processes of a distributed job the first worker pushes, the others do not.
        """
        making = self._core.new(
            name, metrics=metrics, description=description, framework=framework, alias=alias, reason=reason,
            folder=folder, namespace=namespace, store=store,
        )  # fmt: skip
        return BlockingNewVersion(self._portal, making)

    def pull(
        self, reference: str, folder: PathLike | None = None, *, namespace: str | None = None, store: str = ""
    ) -> Path:
        """The files of `NAME:VERSION`, `NAME@ALIAS` or `NAME`, verified, in a folder (by default: the model's name)."""
        return self._portal.run(self._core.pull(reference, folder, namespace=namespace, store=store))

    def get(self, reference: str, *, namespace: str | None = None) -> Handle:
        """The ModelVersion that is meant. Raises `UnknownVersion`."""
        return Handle(self._portal, self._portal.run(self._core.get(reference, namespace=namespace)))

    def list(self, model: str = "", *, namespace: str | None = None) -> Objects[Handle]:
        """The Models of a namespace, or the versions of one, newest first. Raises `UnknownVersion` where there is no
        such model."""
        found = self._portal.run(self._core.list(model, namespace=namespace))
        return Objects(Handle(self._portal, one) for one in found)

    def tag(self, reference: str, alias: str, *, reason: str = "", namespace: str | None = None) -> Handle:
        """Point an alias to a version; the answer is the Model, with the history of its aliases in `spec.moves`."""
        moving = self._core.tag(reference, alias, reason=reason, namespace=namespace)
        return Handle(self._portal, self._portal.run(moving))

    def untag(self, reference: str, *, reason: str = "", namespace: str | None = None) -> Handle:
        """Remove the alias `NAME@ALIAS`; the removal is part of the history. The answer is the Model."""
        return Handle(self._portal, self._portal.run(self._core.untag(reference, reason=reason, namespace=namespace)))

    def promote(
        self, reference: str, *, to: str = "production", reason: str = "", namespace: str | None = None
    ) -> Handle:
        """Point the alias `production`, or another, to `NAME:VERSION` or to what `NAME@ALIAS` points to."""
        moving = self._core.promote(reference, to=to, reason=reason, namespace=namespace)
        return Handle(self._portal, self._portal.run(moving))

    def rollback(self, reference: str, *, reason: str = "", namespace: str | None = None) -> Handle:
        """Point `NAME@ALIAS` to the version before, by its history; again: further back. The answer is the Model."""
        moving = self._core.rollback(reference, reason=reason, namespace=namespace)
        return Handle(self._portal, self._portal.run(moving))

    def remove(self, name: str, *, force: bool = False, namespace: str | None = None, store: str = "") -> Sequence[str]:
        """`NAME:VERSION`, or `NAME` with all its versions, which are returned. Raises `InUse` while an alias or a
        PaddleService uses what would go; with `force` a model is removed together with its aliases."""
        return self._portal.run(self._core.remove(name, force=force, namespace=namespace, store=store))

    def serve(
        self,
        reference: str,
        *,
        name: str = "",
        follow: bool = False,
        min_scale: int | None = None,
        max_scale: int | None = None,
        namespace: str | None = None,
    ) -> Handle:
        """A PaddleService of `NAME:VERSION` or `NAME@ALIAS`, called as the model unless `name` says otherwise.

        It keeps its version when the alias is moved, unless `follow` is given; the same call again takes up what the
        alias points to then. Raises `UnknownVersion`."""
        serving = self._core.serve(
            reference, name=name, follow=follow, min_scale=min_scale, max_scale=max_scale, namespace=namespace
        )
        return Handle(self._portal, self._portal.run(serving))


@checked
class Client:
    """One server, one default namespace. It may be used from several threads.

    It closes itself when neither it nor any object it gave is in use any more; `close` and `with` do so at once.
    """

    def __init__(self, config: Config, *, namespace: str | None = None) -> None:
        self._core = AsyncClient(config, namespace=namespace)
        self._portal = Portal(self._core.close)
        self.jobs = Jobs(self._portal, self._core)
        self.models = Models(self._portal, self._core)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends what is still waited for or followed. Twice is as good as once."""
        self._portal.close()

    @property
    def config(self) -> Config:
        return self._core.config

    @property
    def namespace(self) -> str:
        return self._core.namespace

    @property
    def context(self) -> str:
        return self._core.context

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.context} {self.config.server} namespace {self.namespace}>"

    def apply(self, source: ManifestSource, *, namespace: str | None = None, force: bool = False) -> Handle:
        """Make the server hold what one object says, by server-side apply: a path, YAML text, a dict, an object.

        `force` takes fields over from other owners instead of raising `kube.errors.Conflict`.
        """
        return self._handle(self._portal.run(self._core.apply(source, namespace=namespace, force=force)))

    def apply_all(
        self, source: ManifestSource, *, namespace: str | None = None, force: bool = False
    ) -> Objects[Handle]:
        """The same for any number of objects; namespaces and definitions go first."""
        applied = self._portal.run(self._core.apply_all(source, namespace=namespace, force=force))
        return Objects(self._handle(one) for one in applied)

    def get(self, kind: str, name: str, *, namespace: str | None = None) -> Handle:
        """`kind` as on the command line: pods, po, Deployment, pdj, paddlejobs.batch.paddlepaddle.org."""
        return self._handle(self._portal.run(self._core.get(kind, name, namespace=namespace)))

    def list(
        self,
        kind: str,
        *,
        namespace: str | None = None,
        all_namespaces: bool = False,
        labels: Labels = None,
        fields: str | None = None,
    ) -> Objects[Handle]:
        found = self._portal.run(
            self._core.list(kind, namespace=namespace, all_namespaces=all_namespaces, labels=labels, fields=fields)
        )
        return Objects(self._handle(one) for one in found)

    def delete(
        self,
        kind: str,
        name: str,
        *,
        namespace: str | None = None,
        wait: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Raises `kube.errors.NotFound` when there is none."""
        self._portal.run(self._core.delete(kind, name, namespace=namespace, wait=wait, timeout=timeout))

    def version(self) -> Object:
        """What the server says of itself."""
        return self._portal.run(self._core.version())

    def is_embedded(self) -> bool:
        """Whether its pods are processes of this machine."""
        return self._portal.run(self._core.is_embedded())

    def _handle(self, core: AsyncHandle) -> Handle:
        if isinstance(core, AsyncJob):
            return Job(self._portal, core)
        return Service(self._portal, core) if isinstance(core, AsyncService) else Handle(self._portal, core)


@checked_call
def connect(
    *, context: str | None = None, kubeconfig: str | os.PathLike[str] | None = None, namespace: str | None = None
) -> Client:
    """A client of the chosen context, as kubectl would choose it: $KUBECONFIG, ~/.kube/config, or inside a pod its
    service account. Raises `kube.errors.ConfigError` when there is none; nothing is sent yet.
    """
    return Client(load(os.fspath(kubeconfig) if kubeconfig else None, context), namespace=namespace)
