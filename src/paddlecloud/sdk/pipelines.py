"""`pc.pipelines`: run a pipeline of kfp from a script or notebook, and a client of kfp that is ready to use.

    run = pc.pipelines.run(my_pipeline, {"epochs": 3})      # a function with @dsl.pipeline, or a file
    run.wait(check=True)

`run` creates a Workflow and needs no server of Kubeflow Pipelines: it works on every cluster that has Argo.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from paddlecloud.kube import config as kubeconfig
from paddlecloud.kube.client import Client as KubeClient
from paddlecloud.kube.errors import ConfigError, NotFound
from paddlecloud.kube.generated_names import suffix
from paddlecloud.kube.resource import Object
from paddlecloud.pipelines import names
from paddlecloud.pipelines.runs import actions, package, record, starting, states
from paddlecloud.pipelines.runs.package import Package
from paddlecloud.pipelines.runs.submission import RunRequest
from paddlecloud.sdk import compiling
from paddlecloud.sdk.checking import checked, checked_call
from paddlecloud.sdk.failed_steps import failure_of
from paddlecloud.sdk.handles import AsyncHandle, JobFailed
from paddlecloud.sdk.members import lives_of
from paddlecloud.sdk.sync import Client, Handle, connect

Pipeline = Callable[..., Any] | str | Path | Mapping[str, Any]


@checked
class AsyncPipelineRun(AsyncHandle):
    """A run of a pipeline: a Workflow."""

    async def wait(self, *, timeout: float | None = None, check: bool = False) -> str:
        how = await self._until_ended(timeout)
        if check and how == "failed":
            raise JobFailed(self.name, (await failure_of(self._client.api, self.body)).why)
        return states.phase_of(self.body)

    async def steps(self) -> list[record.Step]:
        await self.refresh()
        return await steps_of(self._client.api, self.body)

    async def stop(self) -> None:
        await self.refresh()
        await actions.stop(self._client.api, self.body)

    async def retry(self) -> None:
        await self.refresh()
        await actions.retry(self._client.api, self.body)

    async def resubmit(
        self, arguments: Mapping[str, Any] | None = None, *, name: str = "", cache: bool = True
    ) -> AsyncPipelineRun:
        await self.refresh()
        made = await starting.resubmit(
            self._client.api, self.body, arguments or {},
            run_id=str(uuid.uuid4()), suffix=suffix(), name=name, cache=cache,
        )  # fmt: skip
        return AsyncPipelineRun(self._client, names.WORKFLOWS, made)


@checked
class PipelineRun(Handle):
    """A run of a pipeline: a Workflow."""

    _core: AsyncPipelineRun

    def wait(self, *, timeout: float | None = None, check: bool = False) -> str:
        """Until it has ended; the answer is its phase. `check` raises `JobFailed` unless it succeeded."""
        return self._portal.run(self._core.wait(timeout=timeout, check=check))

    def steps(self) -> list[record.Step]:
        """What each step got, gave and took, in the order of the graph."""
        return self._portal.run(self._core.steps())

    def stop(self) -> None:
        """End what runs and begin nothing more; exit handlers run."""
        self._portal.run(self._core.stop())

    def retry(self) -> None:
        """Begin again at the steps that failed."""
        self._portal.run(self._core.retry())

    def resubmit(
        self, arguments: Mapping[str, Any] | None = None, *, name: str = "", cache: bool = True
    ) -> PipelineRun:
        """A new run of the same pipeline, with other values for these parameters; the others keep theirs.

        Raises `PackageError` for a parameter or a value that the pipeline does not take.
        """
        return PipelineRun(self._portal, self._portal.run(self._core.resubmit(arguments, name=name, cache=cache)))


@checked_call
def run(
    pipeline: Pipeline,
    arguments: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    namespace: str | None = None,
    service_account: str = "",
    cache: bool = True,
    client: Client | None = None,
) -> PipelineRun:
    """Run a function with `@dsl.pipeline`, a `.py` file with one, or a compiled file: kfp 1's, kfp 2's, a Workflow.

    Without `client` it goes to the cluster of the kubeconfig. With `cache=False` every step runs, whatever the pipeline
    allows.
    """
    found = read(pipeline)
    used = client or connect()
    request = RunRequest(
        name=name or found.name,
        namespace=namespace or used.namespace,
        run_id=str(uuid.uuid4()),
        parameters=arguments or {},
        service_account=service_account,
        cache=cache,
    )
    core = used._core
    made = used._portal.run(starting.start(core.api, found, request, suffix=suffix()))
    return PipelineRun(used._portal, AsyncPipelineRun(core, names.WORKFLOWS, made))


def read(pipeline: Pipeline, *, function: str = "", python: str = "") -> Package:
    """Raises `PackageError` or `CompileError`."""
    if isinstance(pipeline, Mapping):
        return package.of_document(dict(pipeline))
    if not isinstance(pipeline, (str, Path)):
        return package.read(compiling.compile_function(pipeline))
    path = Path(pipeline)
    if not path.is_file():
        raise package.PackageError(f"there is no file {path}")
    if path.suffix == ".py":
        return package.read(compiling.compile_file(path, function=function, python=python))
    return package.read(path.read_bytes())


async def steps_of(client: KubeClient, workflow: Object) -> list[record.Step]:
    """With what pods and the artifact repository add: images, times, digests. A cluster may have less of it."""
    pods = [one.pod for one in await lives_of(client, workflow)]
    return record.steps(workflow, pods, await stored_artifacts(client, workflow))


async def stored_artifacts(client: KubeClient, workflow: Object) -> list[Object]:
    meta = workflow["metadata"]
    try:
        answer = await client.raw("GET", names.WORKFLOWS.path(meta["namespace"], meta["name"], "artifacts"))
    except NotFound:
        return []  # a cluster has no such path
    import msgspec

    found: list[Object] = msgspec.json.decode(answer.body).get("items") or []
    return found


@checked_call
def client(*, kubeconfig_file: str | None = None, context: str | None = None, namespace: str = "") -> Any:
    """`kfp.Client` of the installed kfp, for the platform of `pdc up` that the context names: its address and token.

    `namespace` is where runs go (default: kubeflow). On another cluster give kfp the address of its own server.
    """
    try:
        import kfp
    except ImportError as error:
        raise ImportError("kfp is not installed: pip install kfp==1.8.22, or pip install kfp") from error
    host, token = address(kubeconfig_file, context)
    made = kfp.Client(host=host, existing_token=token)
    if namespace:
        made._context_setting["namespace"] = namespace  # for this client alone; its own method writes a file
    return made


def address(kubeconfig_file: str | None = None, context: str | None = None) -> tuple[str, str]:
    """The URL of the pipelines' API of the embedded platform, and the token of the context."""
    from paddlecloud.platform import endpoint
    from paddlecloud.sdk.embedded_server import local_port

    config = kubeconfig.load(kubeconfig_file, context)
    data = endpoint.find_at_port(local_port(config.server))
    found = endpoint.find(data) if data is not None else None
    if found is None or not found.pipelines_url:
        raise ConfigError(
            f"context {config.context!r} is no platform of this machine; start one with `pdc up`, or give "
            "kfp.Client the address of the cluster's server and a token (kubectl create token ACCOUNT)",
            reason="NoPipelines",
        )
    credential = config.source.peek() or config.source.fetch()
    if not credential.token:
        raise ConfigError(f"context {config.context!r} has no token, which the pipelines' API needs", reason="NoToken")
    return found.pipelines_url, credential.token
