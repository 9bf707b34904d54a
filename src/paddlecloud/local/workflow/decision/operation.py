"""One pass over a workflow: from its entrypoint down, what is due is begun and what is over is noted.

The tree of nodes is walked anew in each pass, as Argo's operator does; a node that is over is not entered again. What a
template of each kind does is in `steps.py`, `dag.py`, `suspension.py` and, for those with a pod, `pods/pod.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from paddlecloud.kube.clock import parse_rfc3339, rfc3339
from paddlecloud.kube.resource import Object
from paddlecloud.local.workflow.artifacts.locations import REPOSITORY
from paddlecloud.local.workflow.artifacts.repositories import is_built_in, with_archive_location
from paddlecloud.local.workflow.decision import memoization, retries, stopping
from paddlecloud.local.workflow.decision.locks import Holding
from paddlecloud.local.workflow.decision.loops import text_in
from paddlecloud.local.workflow.decision.metrics import Metering, WorkflowPlan
from paddlecloud.local.workflow.decision.parallelism import UnderWay, is_active_pod, waits_for_lock
from paddlecloud.local.workflow.decision.place import Execution, Place, described_by, shown_as
from paddlecloud.local.workflow.decision.stopping import Stop
from paddlecloud.local.workflow.expressions.budget import Work
from paddlecloud.local.workflow.limits import MOST_BEGUN, Allowance, TooLarge
from paddlecloud.local.workflow.names import node_id, pod_name
from paddlecloud.local.workflow.nodes import (
    ERROR,
    FAILED,
    PENDING,
    RUNNING,
    SUCCEEDED,
    Node,
    Nodes,
    has_ended,
    has_failed,
    has_pod,
    is_over,
    readable,
)
from paddlecloud.local.workflow.observed import Observed
from paddlecloud.local.workflow.pods import container_set
from paddlecloud.local.workflow.pods.image_commands import with_commands
from paddlecloud.local.workflow.pods.pod import pod_for
from paddlecloud.local.workflow.templates import (
    GROUP_KINDS,
    NODE_TYPES,
    POD_KINDS,
    Holder,
    Library,
    Template,
    TemplateError,
    kind_of,
    processed,
    stored_templates,
    substituted,
    templates_of,
    with_defaults,
    with_timeout,
)
from paddlecloud.local.workflow.variables import UnresolvedVariable, substitute

_RESULT = re.compile(r"(?:steps|tasks)(?:\.|\[\\?['\"])([\w-]+)(?:\\?['\"]\])?\.outputs\.result\b")
LOCK_WAIT = 10.0
"""Seconds between two passes that wait for a lock. A lock that is released brings a pass at once; a higher limit does
not."""
_NOT_OF_PODS = ("templates", "arguments", "hooks", "onExit", "templateDefaults")
DEEPEST = 100
"""Templates inside templates, as Argo's default."""

NOT_CARRIED_OUT = (TemplateError, UnresolvedVariable, ValueError, OverflowError)


class Operation:
    def __init__(
        self, workflow: Object, spec: Mapping[str, Any], observed: Observed, nodes: Nodes, now: float, work: Work
    ) -> None:
        self.workflow = workflow
        self.spec = spec
        self.observed = observed
        self.nodes = nodes
        self.now = now
        self.plan = WorkflowPlan()
        before = workflow.get("status") or {}
        began = parse_rfc3339(before["startedAt"]) if before.get("startedAt") else now
        self.metering = Metering(readable(before.get("nodes")), began, now)
        self.allowance = Allowance()
        self._work = work
        self._known = len(nodes.by_id)
        self.repository: Object = REPOSITORY
        """`status.artifactRepositoryRef`"""
        self.variables: dict[str, Any] = {}
        self.artifacts: dict[str, dict[str, Any]] = {}
        """Of the whole workflow, by their whole name."""
        self._under_way = UnderWay(nodes)
        self._results: dict[str, frozenset[str]] = {}
        self._substituted: Mapping[str, Any] | None = None
        self._lock_message = ("", "")
        self.stop = self._why_stopped()
        self.holding = Holding(workflow, nodes, observed.locks)
        self.errors: dict[str, str] = {}
        """Why templates could not be carried out in this pass, by the names of their nodes: what Argo's
        `executeTemplate` returns as an error, beside the node."""
        self.stored = stored_templates(workflow)
        """Templates of other objects, as they were when they were first used."""

    def _why_stopped(self) -> Stop | None:
        """Somebody stopped the workflow, or its time is over: nothing begins any more but exit handlers."""
        if strategy := self.spec.get("shutdown"):
            return stopping.shutdown(str(strategy))
        deadline = stopping.deadline_of(self.spec, self.workflow.get("status") or {})
        if deadline is not None and deadline <= self.now:
            return stopping.deadline_exceeded(deadline)
        if deadline is not None:
            self.plan.requeue_after(deadline - self.now)
        return None

    def stop_in(self, place: Place) -> Stop | None:
        """Exit handlers go on when a workflow is stopped; when it is terminated they end as well."""
        return None if place.on_exit and self.spec.get("shutdown") != "Terminate" else self.stop

    def library(self) -> Library:
        """The templates of the workflow itself. As in Argo the merged spec of one with a reference has no name."""
        refers = bool((self.workflow.get("spec") or {}).get("workflowTemplateRef"))
        scope = "local/" if refers else f"local/{self.name}"
        return Library(templates_of(self.spec), scope, self.observed.specs, self.stored)

    @property
    def name(self) -> str:
        return str(self.workflow["metadata"]["name"])

    def execute(
        self, name: str, holder: Holder, arguments: Mapping[str, Any], place: Place, **fields: Any
    ) -> Node | None:
        """Carry out the template that a step, task or hook names. None: its turn has not come (parallelism)."""
        node = self.nodes.find(name)
        if node is not None and is_over(node) and not node.get("daemoned"):
            self.note_end(node, holder, place)
            return node
        if node is None and self.has_begun_enough():
            return None
        if node is not None and self.is_under_way(node):
            return node
        if place.depth > DEEPEST:
            return self.fail(name, holder, place, "Maximum recursion depth exceeded")
        try:
            return self._execute(name, holder, arguments, place, fields)
        except TooLarge:
            raise  # it ends the whole workflow, not one node
        except NOT_CARRIED_OUT as why:
            self.errors[name] = str(why)
            return self.fail(name, holder, place, str(why))

    def _execute(
        self, name: str, holder: Holder, arguments: Mapping[str, Any], place: Place, fields: dict[str, Any]
    ) -> Node | None:
        node = self.nodes.find(name)
        template, library = place.library.find(holder)
        template = with_defaults(template, self.spec.get("templateDefaults") or {})
        kind = kind_of(template)
        self.metering.note(node_id(self.name, name), template)
        if (node is None or waits_for_lock(node)) and (stop := self.stop_in(place)):
            return self.fail(name, holder, place, stop.not_begun, phase=FAILED)
        if self._has_to_wait(template, node, place):
            return node
        self.allowance.take_text(text_in(arguments))
        ready = self._processed(name, template, arguments)
        due = Execution(name, ready, kind, holder, library, place, {**fields, "displayName": shown_as(ready)})
        if ready.get("synchronization") and not self._may_go_on(name, ready):
            return self._wait_for_lock(due)
        if ready.get("memoize") and (node is None or "memoizationStatus" not in node):
            memoized, outputs = memoization.found(
                ready["memoize"],
                self.observed.cache,
                self.now,
                self.observed.is_stored,
                built_in=is_built_in(self.repository),
            )
            due = replace(due, fields={**due.fields, "memoizationStatus": memoized})
            if outputs is not None:
                return self._from_cache(due, outputs)
            if node is not None:
                node["memoizationStatus"] = memoized
        if node is not None and node["phase"] == PENDING and not has_pod(node):
            node |= {"phase": RUNNING, "startedAt": rfc3339(self.now)}
        if self._retry_strategy(ready) is not None:
            return self._attempts(node or self._add(due, "Retry", RUNNING), due)
        return self._carry_out(due)

    def _add(self, due: Execution, node_type: str, phase: str) -> Node:
        return self.nodes.add(due.name, node_type, phase, boundary=due.place.boundary, **due.described())

    def note_end(self, node: Node, holder: Holder, place: Place) -> None:
        """The metrics of a node that was observed to be over in this pass are due."""
        if self.metering.ended_now(node) and (template := place.library.declared(holder)) is not None:
            self.metering.note(node["id"], with_defaults(template, self.spec.get("templateDefaults") or {}))

    def has_begun_enough(self) -> bool:
        """The rest is for the next pass. At least one node is begun in each: nothing waits for ever."""
        begun = len(self.nodes.by_id) - self._known
        enough = begun >= MOST_BEGUN or (begun > 0 and self._work.is_half_done)
        if enough:
            self.plan.requeue_after(0.0)
        return enough

    def is_under_way(self, node: Node) -> bool:
        """Its pod is made, and all that is to be done is to observe it (`decide`): its template is not read again."""
        if node["type"] == "Retry":
            attempts = self.nodes.children(node)
            return bool(attempts) and has_pod(attempts[-1]) and self.is_under_way(attempts[-1])
        if not has_pod(node) or is_over(node):
            return False
        return node["phase"] != PENDING or node["id"] in self.observed.pods

    def fail(self, name: str, holder: Holder, place: Place, message: str, *, phase: str = ERROR) -> Node:
        """A node that has not begun is of the type Skipped."""
        node = self.nodes.find(name)
        if node is not None:
            return self.nodes.mark(node, phase, message)
        described = described_by(holder, place, {})
        return self.nodes.add(name, "Skipped", phase, boundary=place.boundary, message=message, **described)

    def _may_go_on(self, name: str, template: Template) -> bool:
        """Whether a node has the locks of its template; the message for one that waits is on its node."""
        own, waits_for, message = self.holding.take(template["synchronization"], node_id(self.name, name))
        self._lock_message = waits_for, message
        return own

    def _from_cache(self, due: Execution, outputs: dict[str, Any]) -> Node:
        node = self.nodes.find(due.name) or self._add(due, NODE_TYPES[due.kind], PENDING)
        node |= {"memoizationStatus": due.fields["memoizationStatus"], "outputs": outputs}
        return self.nodes.mark(node, SUCCEEDED)

    def _wait_for_lock(self, due: Execution) -> Node:
        """Its node does not begin: another one holds the lock, or it holds the lock from the next pass on."""
        node_type = "Retry" if self._retry_strategy(due.template) is not None else NODE_TYPES[due.kind]
        node = self.nodes.find(due.name) or self._add(due, node_type, PENDING)
        waits_for, message = self._lock_message
        node.pop("message", None)
        node.pop("synchronizationStatus", None)
        if waits_for:
            node |= {"message": message, "synchronizationStatus": {"waiting": waits_for}}
        self.plan.requeue_after(LOCK_WAIT if waits_for else 0.0)
        return node

    # One template

    def _processed(self, name: str, template: Template, arguments: Mapping[str, Any]) -> Template:
        local = {"node.name": name}
        if kind_of(template) in POD_KINDS and self._retry_strategy(template) is None:
            local["pod.name"] = pod_name(self.name, name, template.get("name", ""))
        made = processed(template, arguments, {**self.variables, **local}, config_map=self.observed.config_map)
        return with_timeout(made)

    def _retry_strategy(self, template: Template) -> Mapping[str, Any] | None:
        own: Mapping[str, Any] | None = template.get("retryStrategy")
        return own if own is not None else self.spec.get("retryStrategy")

    def _has_to_wait(self, template: Template, node: Node | None, place: Place) -> bool:
        begins = node is None or waits_for_lock(node)
        return begins and self._under_way.is_full(kind_of(template), self.spec.get("parallelism"), place)

    def _attempts(self, node: Node, due: Execution) -> Node:
        strategy = self._retry_strategy(due.template)
        assert strategy is not None
        attempts = self.nodes.children(node)
        decision = retries.decide_retry(strategy, node, attempts, self.now, self.stop.retry if self.stop else "")
        if decision.phase:
            last = attempts[-1]
            if last.get("outputs"):
                node["outputs"] = last["outputs"]
            if last.get("daemoned"):
                node |= {key: last[key] for key in ("daemoned", "podIP") if key in last}
            return self.nodes.mark(node, decision.phase, decision.message)
        if decision.wait is not None:
            self.plan.requeue_after(decision.wait)
            node["message"] = decision.message
            return node
        node.pop("message", None)
        name = decision.attempt
        self.nodes.connect(node, name)
        pod = pod_name(self.name, name, due.template.get("name", ""))
        known = {**retries.variables(attempts, name), "pod.name": pod}
        ready = substituted(due.template, {**self.variables, **known})
        try:
            made = self._carry_out(replace(due, name=name, template=ready, fields={"nodeFlag": {"retried": True}}))
        except TooLarge:
            raise
        except NOT_CARRIED_OUT as why:
            self.fail(name, due.holder, due.place, str(why))
            if not retries.retries_errors(strategy):
                raise
            self.plan.requeue_after(0.0)
            return node
        if made is not None and has_ended(made):
            return self._attempts(node, due)
        return node

    def _carry_out(self, due: Execution) -> Node | None:
        from paddlecloud.local.workflow.decision import dag, steps, suspension

        node, template, kind, place = self.nodes.find(due.name), due.template, due.kind, due.place
        if node is None and self._is_left_over(due.name):
            return None
        if node is None:
            node = self._add(due, NODE_TYPES[kind], PENDING if kind in POD_KINDS else RUNNING)
            if kind in GROUP_KINDS:
                self._under_way.begin(node)
        if kind in ("container", "script", "containerSet") and self._is_result_named(due.holder, place):
            template = {**template, "capturesResult": True}
        if template.get("failFast") and kind in GROUP_KINDS and self._has_failed_children(node):
            return node
        if kind == "steps":
            return steps.carry_out(self, node, template, place.inside(due.library, node, template))
        if kind == "dag":
            return dag.carry_out(self, node, template, place.inside(due.library, node, template))
        if kind == "suspend":
            return suspension.carry_out(self, node, template)
        if kind == "plugin":  # as Argo's agent, where no plugin is installed (workflow/executor/agent.go)
            return self.nodes.mark(node, FAILED, "no plugin executed the template")
        return self._pod(node, template, place)

    def _has_failed_children(self, node: Node) -> bool:
        """`failFast` of a template: nothing more begins below it, and once no pod is left it has failed."""
        below = [each for each in self.nodes if each.get("boundaryID") == node["id"]]
        flags = [each.get("nodeFlag") or {} for each in below]
        if not any(has_failed(each) and not flag for each, flag in zip(below, flags, strict=True)):
            return False
        if not any(is_active_pod(each) for each in below):
            why = "template has failed or errored children and failFast enabled"
            for each in [each for each in below if each["type"] == "StepGroup" and not is_over(each)]:
                self.nodes.mark(each, FAILED, why)
            self.nodes.mark(node, FAILED, why)
        return True

    def _is_left_over(self, name: str) -> bool:
        """`argo retry` takes nodes out of the status and deletes their pods: until a pod is gone, its node waits."""
        pod = self.observed.pods.get(node_id(self.name, name))
        return pod is not None and bool(pod["metadata"].get("deletionTimestamp"))

    def _is_result_named(self, holder: Holder, place: Place) -> bool:
        """As Argo's `hasOutputResultRef`: what a program prints is kept where another step names its result."""
        if place.boundary not in self._results:
            inner = [place.around.get(each) for each in ("steps", "dag", "outputs")]
            texts = json.dumps(inner, ensure_ascii=False)
            self._results[place.boundary] = frozenset(_RESULT.findall(texts))
        return str(holder.get("name", "")).partition("(")[0] in self._results[place.boundary]

    def _spec_for_pods(self) -> Mapping[str, Any]:
        """As Argo's `substituteGlobalVariables`: any field of the workflow may name its variables."""
        if self._substituted is None:
            own = {key: value for key, value in self.spec.items() if key not in _NOT_OF_PODS}
            self._substituted = substitute(own, self.variables, lenient=True)
        return self._substituted

    def _pod(self, node: Node, template: Template, place: Place) -> Node:
        """Its pod is observed before the walk (`decide`); here it is only made."""
        if node["phase"] == PENDING and node["id"] not in self.observed.pods:
            if stop := self.stop_in(place):  # its pod is gone, and a crash lost the status that says so
                return self.nodes.mark(node, FAILED, stop.not_begun)
            if node["id"] in self.observed.refused:
                raise TemplateError(self.observed.refused[node["id"]])
            name = pod_name(self.name, node["name"], template.get("name", ""))
            self._under_way.begin(node)
            template = with_commands(template, self.observed.programs)
            known = {**self.variables, "pod.name": name}
            template = with_archive_location(template, self.spec, self.repository, known)
            self.plan.create.append(pod_for(self.workflow, self._spec_for_pods(), node, template))
            if "containerSet" in template:
                container_set.add_nodes(self.nodes, node, template)
        return node
