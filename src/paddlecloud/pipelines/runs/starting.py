"""Start a run: create the Workflow of a package, under the account that its steps should have, or that of an earlier
run again.

Coroutines that await nothing but the client, so that `pdc` runs them without an event loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import NotFound
from paddlecloud.kube.resource import SERVICEACCOUNTS, Object
from paddlecloud.pipelines import names
from paddlecloud.pipelines.runs import recurrence, resubmission, submission
from paddlecloud.pipelines.runs.package import Package
from paddlecloud.pipelines.runs.schedule import Trigger
from paddlecloud.pipelines.runs.submission import RunRequest


async def start(client: Client, package: Package, request: RunRequest, *, suffix: str) -> Object:
    """Raises `PackageError` for what the package does not accept."""
    wanted = await with_account(client, package, request)
    return await client.create(names.WORKFLOWS, submission.workflow_of(package, wanted, suffix=suffix))


async def resubmit(
    client: Client, workflow: Object, parameters: Mapping[str, Any], *,
    run_id: str, suffix: str, name: str = "", cache: bool = True,
) -> Object:  # fmt: skip
    """A new run like this one. Raises `PackageError` for what the pipeline does not accept."""
    made = resubmission.resubmitted(workflow, parameters, run_id=run_id, suffix=suffix, name=name, cache=cache)
    return await client.create(names.WORKFLOWS, made)


async def schedule(
    client: Client, package: Package, request: RunRequest, trigger: Trigger, *, suffix: str, name: str = ""
) -> Object:
    """A recurring run. `request.recurring_id` is its id; `name` is that of the object, by default one that is free.

    Raises `AlreadyExists` if another one has the name.
    """
    wanted = await with_account(client, package, request)
    workflow = submission.workflow_of(package, wanted, suffix=suffix)
    if name:
        workflow["metadata"]["name"] = name
    made = recurrence.cron_workflow(workflow, request.recurring_id, request.name, trigger)
    return await client.create(names.CRON_WORKFLOWS, made)


async def with_account(client: Client, package: Package, request: RunRequest) -> RunRequest:
    if request.service_account:
        return request
    return request._replace(service_account=await account_for(client, package, request.namespace))


async def account_for(client: Client, package: Package, namespace: str) -> str:
    """The account of steps where nobody named one: KFP's, if the namespace has it.

    kfp 1 writes that account into every file, so a file that names it named none. A Workflow that was not compiled by
    kfp keeps what it says.
    """
    spec = package.spec.get("spec") or {}
    named = str(spec.get("serviceAccountName") or "") if package.format == "workflow" else ""
    if named not in ("", names.RUNNER) or (not named and not _is_of_kfp(package)):
        return named
    try:
        await client.get(SERVICEACCOUNTS, names.RUNNER, namespace)
    except NotFound:
        return "default"
    return names.RUNNER


def _is_of_kfp(package: Package) -> bool:
    annotations = (package.spec.get("metadata") or {}).get("annotations") or {}
    return package.format == "ir" or names.SDK_VERSION in annotations or names.PIPELINE_SPEC in annotations
