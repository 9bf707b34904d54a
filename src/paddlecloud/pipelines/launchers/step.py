"""One step of a run: the objects it creates, waits for, and deletes when it is stopped.

Which run an object was started for is written into it (`MARK`). So a launcher that starts again in the same run,
because its pod was lost, finds the work of its predecessor and waits for it; another run replaces it. The actions are
the original's: `create`, `apply`, `patch`, `delete`. Deleting what is not there is done already, and a deletion is
over when the object is gone.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from paddlecloud.api import names
from paddlecloud.kube import watching
from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import AlreadyExists, ApiError, Conflict, Expired, Forbidden, Gone, NotFound
from paddlecloud.kube.resource import DEPLOYMENTS, JOBS, SECRETS, SERVICES, Object, Resource
from paddlecloud.pipelines.launchers.completion import CompletionCheck, progress
from paddlecloud.pipelines.launchers.failures import StepFailed
from paddlecloud.pipelines.launchers.pod_logs import PodLogs
from paddlecloud.pipelines.launchers.transient import TRANSIENT, retrying

MARK = names.PIPELINE_STEP
ACTIONS = ("create", "apply", "patch", "delete")
MANAGER = "paddlecloud-pipeline"
WATCH_SECONDS = 240

RESOURCES: dict[tuple[str, str], Resource] = {
    (one.api_version, one.kind): one
    for one in (
        DEPLOYMENTS,
        SERVICES,
        JOBS,
        *(Resource(*kind) for kind in (names.PADDLEJOB, names.SAMPLESET, names.SAMPLEJOB)),
        *(Resource(*kind) for kind in (names.PADDLESERVICE, names.EARLIER_PADDLESERVICE)),
    )
}

T = TypeVar("T")


class Place(NamedTuple):
    resource: Resource
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.resource.kind} {self.namespace}/{self.name}"


class Started(NamedTuple):
    place: Place
    uid: str


@dataclass(frozen=True)
class DesiredObject:
    """An object and what a step does about it."""

    body: Object
    check: CompletionCheck
    pods: str = ""
    """Label selector of the pods whose log is copied."""
    once: bool = False
    """It runs to its end, as jobs do, and is replaced rather than changed."""
    after_end: Object | None = None
    """A merge patch for it when it has ended and the log of its pods is read: what would have taken them away."""
    shared: bool = False
    """Others use it too: an object that exists is left as it is, and one that was created stays."""


class LauncherStep:
    def __init__(
        self,
        client: Client,
        *,
        run: str,
        image: str,
        report: Callable[[str], None],
        run_name: str = "",
        step_name: str = "",
        namespace: str = "",
        account: str = "",
    ) -> None:
        self.client = client
        self.image = image
        """Of this launcher, for jobs that run another one."""
        self.run, self.run_name, self.step_name = run, run_name, step_name
        """The id and the name of the run, and the name of the step in it; only the id outside of a pipeline."""
        self.namespace, self.account = namespace, account
        """Of the pod that this runs in; empty outside of a cluster."""
        self._report = report
        self._started: list[Started] = []

    def report(self, text: str) -> None:
        self._report(text)

    def observe(self, see: Callable[[str], None]) -> None:
        """Have every line of the step's log seen from now on, also those that are copied from pods."""
        write = self._report

        def report(text: str) -> None:
            see(text)
            write(text)

        self._report = report

    async def carry_out(self, action: str, wanted: DesiredObject) -> Object | None:
        """The object once its check found it done, or None after a deletion. Raises `StepFailed`."""
        if action == "delete":
            await self.remove(wanted)
            return None
        return await self.wait(wanted, await self.ensure(action, wanted))

    async def ensure(self, action: str, wanted: DesiredObject) -> Object:
        """The object as the action leaves it, without waiting for more."""
        if action not in ACTIONS:
            raise StepFailed(f"action: {action!r} is none of {', '.join(ACTIONS)}")
        place, body = place_of(wanted.body), self._marked(wanted.body)
        existing = await self._find(place)
        if wanted.shared and existing is not None:
            return existing
        if action == "patch":
            return await self._patch(place, existing, wanted.body)
        if existing is None:
            return await self._create(place, body, wanted)
        if wanted.once or action == "create":
            return await self._adopt_or_replace(action, place, existing, body, wanted)
        self.report(f"{place}: applied to the existing one")
        return await self._apply(place, body)

    async def wait(self, wanted: DesiredObject, current: Object) -> Object:
        """Until it is done or failed; meanwhile its progress and the log of its pods go to the step's log."""
        place, uid = place_of(wanted.body), str(current["metadata"]["uid"])
        logs = PodLogs(self.client, place.namespace, wanted.pods, self._report) if wanted.pods else None
        said, drain = "", False
        try:
            async with aclosing(self._states(place)) as states:
                async for state in states:
                    if state is None or state["metadata"]["uid"] != uid:
                        raise StepFailed(f"{place} was deleted while the step waited for it")
                    completion = wanted.check(state)
                    if completion is None:
                        if (line := progress(state)) and line != said:
                            self.report(f"{place}: {line}")
                            said = line
                        continue
                    drain = wanted.once
                    if not completion.done:
                        raise StepFailed(f"{place} failed: {completion.message}")
                    self.report(f"{place}: done")
                    return state
        finally:
            if logs is not None:
                await logs.close(drain=drain)
            if drain and wanted.after_end is not None:
                await self._patch_ended(place, wanted.after_end)
        raise AssertionError("states never end")

    async def _patch_ended(self, place: Place, patch: Object) -> None:
        """The step has its verdict: that this fails changes nothing about it."""
        try:
            await self._retrying(
                lambda: self.client.patch(place.resource, place.name, patch, namespace=place.namespace)
            )
        except NotFound:
            pass  # somebody has deleted it, and with it what the patch would have cleaned up
        except ApiError as error:
            self.report(f"warning: {place} is not cleaned up: {error.message}")

    async def remove(self, wanted: DesiredObject) -> None:
        """Delete it and wait until it is gone; one that is not there is gone already."""
        place = place_of(wanted.body)
        existing = await self._find(place)
        if existing is None:
            self.report(f"{place} does not exist")
            return
        await self._delete(place, existing)

    async def exists(self, wanted: DesiredObject) -> bool:
        return await self._find(place_of(wanted.body)) is not None

    async def served(self, wanted: DesiredObject) -> DesiredObject:
        """A PaddleService under the one of its two groups that the cluster serves, or that has it already."""
        earlier = {**wanted.body, "apiVersion": names.EARLIER_PADDLESERVICE.api_version}
        if not await self._serves(wanted.body["apiVersion"]):
            return replace(wanted, body=earlier)
        there = await self.exists(wanted)
        if not there and await self._serves(earlier["apiVersion"]) and await self.exists(replace(wanted, body=earlier)):
            return replace(wanted, body=earlier)
        return wanted

    async def secret(self, namespace: str, *candidates: str) -> tuple[str, dict[str, str]]:
        """The first of these Secrets that has an access key, and its texts; without one, an empty name."""
        for name in candidates:
            try:
                found = await self._retrying(lambda name=name: self.client.get(SECRETS, name, namespace))  # type: ignore[misc]
            except (NotFound, Forbidden):
                continue  # a store that anybody may read needs none
            data = {key: base64.b64decode(value).decode() for key, value in (found.get("data") or {}).items()}
            if data.get("access-key"):
                return name, data
        return "", {}

    async def _serves(self, api_version: str) -> bool:
        try:
            await self._retrying(lambda: self.client.raw("GET", f"/apis/{api_version}"))
        except NotFound:
            return False
        return True

    async def take_back(self) -> None:
        """Delete what this step started and has not finished; called when its run was stopped or its time is over."""
        for place, uid in reversed(self._started):
            try:
                await self.client.delete(
                    place.resource, place.name, namespace=place.namespace, uid=uid, propagation="Background"
                )
                self.report(f"{place} deleted, because the step was stopped")
            except (NotFound, Conflict):
                pass  # it is gone, or somebody else's of the same name by now
            except ApiError as error:
                self.report(f"{place} could not be deleted: {error.message}")

    # The single requests

    async def _create(self, place: Place, body: Object, wanted: DesiredObject) -> Object:
        try:
            if wanted.once:
                made = await self._retrying(lambda: self.client.create(place.resource, body, namespace=place.namespace))
            else:
                made = await self._apply(place, body)
        except AlreadyExists:
            # An answer that was lost: the request before it had created the object.
            made = await self._retrying(lambda: self.client.get(place.resource, place.name, place.namespace))
            if _mark(made) != _mark(body):
                raise
        self.report(f"{place} created")
        if not wanted.shared:
            self._started.append(Started(place, str(made["metadata"]["uid"])))
        return made

    async def _apply(self, place: Place, body: Object) -> Object:
        return await self._retrying(
            lambda: self.client.patch(
                place.resource,
                place.name,
                body,
                namespace=place.namespace,
                kind="apply",
                force=True,
                field_manager=MANAGER,
            )
        )

    async def _adopt_or_replace(
        self, action: str, place: Place, existing: Object, body: Object, wanted: DesiredObject
    ) -> Object:
        completion = wanted.check(existing)
        failed = completion is not None and not completion.done
        if _mark(existing) == _mark(body) and not failed:
            self.report(f"{place} was started by this run already")
            self._started.append(Started(place, str(existing["metadata"]["uid"])))
            return existing
        if action == "create" and _mark(existing).partition("/")[0] != self.run:
            raise StepFailed(f"{place} exists already; delete it, or use the action apply, which replaces it")
        self.report(f"{place} of another attempt is replaced")
        await self._delete(place, existing)
        return await self._create(place, body, wanted)

    async def _patch(self, place: Place, existing: Object | None, body: Object) -> Object:
        if existing is None:
            raise StepFailed(f"{place} does not exist; the action patch changes one that does, apply creates it")
        return await self._retrying(
            lambda: self.client.patch(place.resource, place.name, body, namespace=place.namespace)
        )

    async def _delete(self, place: Place, existing: Object) -> None:
        uid = str(existing["metadata"]["uid"])
        try:
            await self._retrying(
                lambda: self.client.delete(
                    place.resource, place.name, namespace=place.namespace, uid=uid, propagation="Foreground"
                )
            )
        except (NotFound, Conflict):
            return  # gone, or already another object
        async with aclosing(self._states(place)) as states:
            async for state in states:
                if state is None or state["metadata"]["uid"] != uid:
                    self.report(f"{place} deleted")
                    return

    async def _find(self, place: Place) -> Object | None:
        try:
            return await self._retrying(lambda: self.client.get(place.resource, place.name, place.namespace))
        except NotFound:
            return None

    async def _states(self, place: Place) -> AsyncGenerator[Object | None, None]:
        """The object now and after every change, for ever; None while it does not exist."""
        selector = watching.named(place.name)
        while True:
            found = await self._retrying(
                lambda: self.client.list(place.resource, place.namespace, field_selector=selector)
            )
            states = watching.states(
                self.client, place.resource, place.namespace, found, selector, seconds=WATCH_SECONDS
            )
            try:
                async with aclosing(states) as following:
                    async for state in following:
                        yield state
            except (Expired, Gone, *TRANSIENT):
                pass  # listed again, which is retried with pauses

    async def _retrying(self, call: Callable[[], Awaitable[T]]) -> T:
        return await retrying(call, report=self._report)

    def _marked(self, body: Object) -> Object:
        digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:16]
        meta = body["metadata"]
        annotations = {**(meta.get("annotations") or {}), MARK: f"{self.run}/{digest}"}
        if self.run_name:
            annotations |= {names.PIPELINE_RUN_NAME: self.run_name, names.PIPELINE_STEP_NAME: self.step_name}
        return {**body, "metadata": {**meta, "annotations": annotations}}


def _mark(obj: Object) -> str:
    return str((obj["metadata"].get("annotations") or {}).get(MARK) or "")


def place_of(body: Object) -> Place:
    meta = body["metadata"]
    resource = RESOURCES.get((body["apiVersion"], body["kind"])) or _other_version(body)
    return Place(resource, meta["namespace"], meta["name"])


def _other_version(body: Object) -> Resource:
    """Of one of these kinds, in the version that the input names."""
    group, _, version = str(body["apiVersion"]).rpartition("/")
    for one in RESOURCES.values():
        if (one.group, one.kind) == (group, body["kind"]):
            return one._replace(version=version)
    raise StepFailed(f"no component creates a {body['kind']} of {body['apiVersion']}")
