"""The DAGs of a pipeline as Argo templates: one for each way a component is used, one more for each loop. Pure.

What Kubeflow Pipelines' driver decides in pods of its own is decided here: which inputs are there, where values come
from, what a condition compares, which tasks wait for which.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from paddlecloud.pipelines.ir import caching, claims, kubernetes
from paddlecloud.pipelines.ir.checks import upstream
from paddlecloud.pipelines.ir.conditions import when_of
from paddlecloud.pipelines.ir.errors import InvalidPipeline
from paddlecloud.pipelines.ir.options import PipelineOptions
from paddlecloud.pipelines.ir.outputs import Outputs
from paddlecloud.pipelines.ir.pipeline_spec import Component, Dag, Executor, InputParameter, RetryPolicy, Task
from paddlecloud.pipelines.ir.reader import Pipeline
from paddlecloud.pipelines.ir.scope import ALWAYS, Inputs, Scope
from paddlecloud.pipelines.ir.sources import (
    SIMPLE_TYPES,
    ValueSource,
    artifact_parameter,
    optional_variable,
    tag,
    variable,
)
from paddlecloud.pipelines.ir.steps import StepTemplate
from paddlecloud.pipelines.ir.values import json_of

MOST_TEMPLATES = 2_000
MOST_TEXT = 4 * 1024 * 1024
"""Characters of all arguments and conditions. A default is written out wherever it is used, an import wherever it is
read, so a small pipeline could become a large workflow; Kubernetes stores at most 1.5 MiB."""
ITEMS = "loop-items"
NOTHING = "nothing"
"""A template that does nothing, for tasks that only carry a failure on."""
_GUARD = "upstream-succeeded"
_ENDED = ("Succeeded", "Skipped", "Failed", "Errored", "Omitted")


class Use(msgspec.Struct, frozen=True):
    """How a task uses its component; uses that are equal share a template."""

    component: str
    absent: frozenset[str]
    imported: frozenset[str]
    retry: str = ""
    """Argo's retryStrategy, as JSON."""
    cached: bool = False
    claims: frozenset[str] = frozenset()
    """Inputs with names of claims, whose uids are given besides."""


class Templates:
    """`made` is in the order in which templates were first named."""

    def __init__(self, pipeline: Pipeline, options: PipelineOptions) -> None:
        self._pipeline = pipeline
        self._spec = pipeline.spec
        self._options = options
        self._outputs = Outputs(pipeline.spec)
        self._importers = {
            label: executor.importer
            for label, executor in pipeline.spec.deployment_spec.executors.items()
            if executor.importer is not None
        }
        self._names: dict[object, str] = {}
        self._taken: set[str] = set()
        self._text = 0
        self.pull_secrets: dict[str, None] = {}
        self.made: list[dict[str, Any]] = []

    def root(self, absent: frozenset[str]) -> str:
        name = self._reserve("root", "root")
        self._add_dag(name, self._spec.root, "root.dag", absent, frozenset(), frozenset(), in_loop=False)
        return name

    def _reserve(self, wanted: str, key: object) -> str:
        name, number = wanted, 2
        while name in self._taken:
            name, number = f"{wanted}-{number}", number + 1
        if len(self._taken) >= MOST_TEMPLATES:
            raise InvalidPipeline("components", f"the pipeline becomes more than {MOST_TEMPLATES:,} templates")
        self._taken.add(name)
        self._names[key] = name
        return name

    def _component(self, use: Use, *, in_loop: bool) -> str:
        key = (use, in_loop)
        if key in self._names:
            return self._names[key]
        component = self._spec.components[use.component]
        name = self._reserve(use.component.removeprefix("comp-"), key)
        if component.dag is not None:
            path = f"components.{use.component}.dag"
            self._add_dag(name, component, path, use.absent, use.imported, use.claims, in_loop=in_loop)
        else:
            self._add_step(name, component, use)
        return name

    def _add_step(self, name: str, component: Component, use: Use) -> None:
        executor: Executor = self._spec.deployment_spec.executors[component.executor_label]
        assert executor.container is not None  # importers have no template
        inputs = (*component.input_definitions.parameters, *component.input_definitions.artifacts)
        present = frozenset(inputs) - use.absent
        cached = use.cached
        if claims.is_claim(executor.container):
            cached = False  # a claim of an earlier run may be deleted
            made = claims.template(
                name, executor.container, present, f"deploymentSpec.executors.{component.executor_label}"
            )
        else:
            step = StepTemplate(
                name, component.executor_label, component, executor.container, self._options,
                present=present, imported=use.imported,
            )  # fmt: skip
            made = step.template()
            config = self._pipeline.config_of(component.executor_label)
            self.pull_secrets |= dict.fromkeys(kubernetes.pull_secrets(config))
            kubernetes.apply(config, made, f"platforms.kubernetes.deploymentSpec.executors.{component.executor_label}")
        if use.retry:
            made["retryStrategy"] = json.loads(use.retry)
        if cached:
            made["memoize"] = caching.memoize(
                self._spec.pipeline_info.name, use.component, component, executor.container, made
            )
        self.made.append(made)

    def _add_dag(
        self,
        name: str,
        component: Component,
        path: str,
        absent: frozenset[str],
        imported: frozenset[str],
        known: frozenset[str],
        *,
        in_loop: bool,
    ) -> None:
        dag = component.dag
        assert dag is not None
        template: dict[str, Any] = {"name": name}
        self.made.append(template)
        scope = Scope(component, dag, self._outputs, self._importers, absent=absent, imported=imported, path=path)
        parameters = [each for each in component.input_definitions.parameters if each not in absent]
        artifacts = [artifact_parameter(each) for each in component.input_definitions.artifacts if each not in absent]
        uids = [claims.uid_input(each) for each in sorted(known)]
        if parameters or artifacts:
            template["inputs"] = {"parameters": [{"name": each} for each in (*parameters, *artifacts, *uids)]}
        tasks = [
            self._task(scope, dag, each, task, known=known, in_loop=in_loop)
            for each, task in dag.tasks.items()
            if not self._outputs.is_importer(task)
        ]
        if guard := self._guard(dag):
            tasks.append(guard)
        template["dag"] = {"tasks": tasks}
        if outputs := list(self._dag_outputs(component, dag, scope)):
            template["outputs"] = {"parameters": outputs}

    def _task(
        self, scope: Scope, dag: Dag, name: str, task: Task, *, known: frozenset[str], in_loop: bool
    ) -> dict[str, Any]:
        path = f"{scope.path}.tasks.{name}"
        given = scope.inputs(name, task)
        component = self._outputs.component_of(task)
        iterator = task.parameter_iterator or task.artifact_iterator
        item = iterator.item_input if iterator is not None else ""
        parameters = {
            key: each for key, each in given.parameters.items() if key in component.input_definitions.parameters
        }
        artifacts = {key: each for key, each in given.artifacts.items() if key in component.input_definitions.artifacts}
        inputs = (*component.input_definitions.parameters, *component.input_definitions.artifacts)
        names = {key: each for key, each in task.inputs.parameters.items() if key in parameters}
        uids = self._uids(dag, names, known) if component.dag is not None else {}
        use = Use(
            component=task.component_ref.name,
            absent=frozenset(inputs) - {*parameters, *artifacts, item},
            imported=frozenset(key for key, each in artifacts.items() if each.imported)
            | self._imported_items(task, given),
            retry=_retry(task.retry_policy) if component.dag is None else "",
            cached=self._is_cached(task, component, in_loop=in_loop or bool(item)),
            claims=frozenset(uids),
        )
        arguments = {key: each.argument() for key, each in parameters.items()}
        arguments |= {artifact_parameter(key): each.argument() for key, each in artifacts.items()}
        needs = list(upstream(task))
        if component.dag is None:
            config = self._pipeline.config_of(component.executor_label)
            for slot, source in kubernetes.slots(config).items():
                found = scope.parameter(name, task, source, "", f"{path}.{slot}")
                arguments[slot] = found.argument() if found is not None else ""
                if source.task_output_parameter is not None:
                    needs.append(source.task_output_parameter.producer_task)
            uids = self._uids(dag, kubernetes.claims_mounted(config), known)
        arguments |= {claims.uid_input(key): text for key, text in uids.items()}
        template = self._component(use, in_loop=in_loop or bool(item))
        if iterator is not None:
            arguments[ITEMS] = self._items(task, given, path).argument()
            template = self._loop(name, template, task, component, use)
        made: dict[str, Any] = {"name": name, "template": template}
        if arguments:
            made["arguments"] = {"parameters": [{"name": key, "value": text} for key, text in arguments.items()]}
        if depends := self._depends(dag, needs, always=task.trigger_policy.strategy == ALWAYS):
            made["depends"] = depends
        if condition := task.trigger_policy.condition:
            made["when"] = tag(when_of(condition, given.parameters, f"{path}.triggerPolicy.condition"))
        self._text += sum(map(len, (*arguments.values(), made.get("depends", ""), made.get("when", ""))))
        if self._text > MOST_TEXT:
            raise InvalidPipeline(path, f"the pipeline becomes a workflow with more than {MOST_TEXT:,} characters")
        return made

    def _uids(self, dag: Dag, names: Mapping[str, InputParameter], known: frozenset[str]) -> dict[str, str]:
        """Of those that are names of claims, the uids, where they are known."""
        executors, found = self._spec.deployment_spec.executors, {}
        for key, source in names.items():
            given = source.task_output_parameter
            label = self._outputs.component_of(dag.tasks[given.producer_task]).executor_label if given else ""
            maker = executors[label].container if label else None
            if text := claims.uid(source, maker, known):
                found[key] = text
        return found

    def _is_cached(self, task: Task, component: Component, *, in_loop: bool) -> bool:
        """Artifacts of loops are delivered as a folder of this run: those of an earlier one would not be in it.

        Steps with retries are not cached: the node of such a step that Argo answers from its cache has no attempt, to
        which Argo would join the steps behind it, and the DAG runs for ever (workflow/controller/dag.go,
        assessDAGPhase).
        """
        wanted = self._options.cache and task.caching_options.enable_cache and component.dag is None
        return wanted and not _retry(task.retry_policy) and not (in_loop and component.output_definitions.artifacts)

    def _imported_items(self, task: Task, given: Inputs) -> frozenset[str]:
        if task.artifact_iterator is None:
            return frozenset()
        source = given.artifacts.get(task.artifact_iterator.items.input_artifact)
        return (
            frozenset((task.artifact_iterator.item_input,)) if source is not None and source.imported else frozenset()
        )

    def _items(self, task: Task, given: Inputs, path: str) -> ValueSource:
        if task.artifact_iterator is not None:
            name = task.artifact_iterator.items.input_artifact
            if name not in given.artifacts:
                raise InvalidPipeline(
                    f"{path}.artifactIterator.items.inputArtifact", f"the task has no input {name[:60]!r}"
                )
            return given.artifacts[name]
        assert task.parameter_iterator is not None
        items = task.parameter_iterator.items
        if items.input_parameter:
            if items.input_parameter not in given.parameters:
                name = items.input_parameter[:60]
                raise InvalidPipeline(
                    f"{path}.parameterIterator.items.inputParameter", f"the task has no input {name!r}"
                )
            return given.parameters[items.input_parameter]
        try:
            found = json.loads(items.raw)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, list):
            raise InvalidPipeline(f"{path}.parameterIterator.items.raw", "must be a list in JSON")
        return ValueSource(kind="LIST", literal=json_of(found))

    def _loop(self, task_name: str, body: str, task: Task, component: Component, use: Use) -> str:
        """A template around the body: it has the limit of the loop, and its outputs are those of all iterations."""
        iterator = task.parameter_iterator or task.artifact_iterator
        assert iterator is not None
        key = (use, iterator.item_input, task.iterator_policy.parallelism_limit)
        if key in self._names:
            return self._names[key]
        name = self._reserve(f"{body}-items", key)
        item = iterator.item_input if task.parameter_iterator is not None else artifact_parameter(iterator.item_input)
        passed = [
            each
            for each in (
                *(each for each in component.input_definitions.parameters if each not in use.absent),
                *(artifact_parameter(each) for each in component.input_definitions.artifacts if each not in use.absent),
                *(claims.uid_input(each) for each in sorted(use.claims)),
            )
            if each != item
        ]
        values = [{"name": each, "value": f"{{{{inputs.parameters.{each}}}}}"} for each in passed]
        template: dict[str, Any] = {
            "name": name,
            "inputs": {"parameters": [{"name": each} for each in (*passed, ITEMS)]},
            "dag": {
                "tasks": [
                    {
                        "name": task_name,
                        "template": body,
                        "arguments": {"parameters": [*values, {"name": item, "value": "{{item}}"}]},
                        "withParam": f"{{{{inputs.parameters.{ITEMS}}}}}",
                    }
                ]
            },
        }
        if task.iterator_policy.parallelism_limit > 0:
            template["parallelism"] = task.iterator_policy.parallelism_limit
        if outputs := list(self._collected(task_name, task, component)):
            template["outputs"] = {"parameters": outputs}
        self.made.append(template)
        return name

    def _collected(self, task_name: str, task: Task, component: Component) -> Iterator[dict[str, Any]]:
        """Argo gives the outputs of a loop as a list of texts, or of values if all of them are lists or maps."""
        empty = f"len(fromJSON({variable(f'inputs.parameters.{ITEMS}')})) == 0"
        for key in component.output_definitions.parameters:
            every = variable(f"tasks.{task_name}.outputs.parameters.{key}")
            if self._outputs.kind_in(task.component_ref.name, key) in SIMPLE_TYPES:
                every = f"'[' + join(fromJSON({every}), ',') + ']'"
            yield {"name": key, "valueFrom": {"expression": f"{empty} ? '[]' : {every}"}}
        for key in component.output_definitions.artifacts:
            name = artifact_parameter(key)
            every = variable(f"tasks.{task_name}.outputs.parameters.{name}")
            yield {"name": name, "valueFrom": {"expression": f"{empty} ? '[]' : {every}"}}

    def _depends(self, dag: Dag, needs: list[str], *, always: bool) -> str:
        """In the words of Argo. An importer is no task there: what it waits for is waited for in its place."""
        found: dict[str, None] = {}
        queue = list(dict.fromkeys(needs))
        seen: set[str] = set()
        for name in queue:  # grows while it is read
            if name in seen:
                continue
            seen.add(name)
            if self._outputs.is_importer(dag.tasks[name]):
                queue += upstream(dag.tasks[name])
            else:
                found[name] = None
        if always:
            return " && ".join(f"({' || '.join(f'{each}.{end}' for end in _ENDED)})" for each in found)
        return " && ".join(found)

    def _guard(self, dag: Dag) -> dict[str, Any] | None:
        """A task that runs in spite of failures would hide them: in Argo the last tasks of a DAG decide how it ends.
        This one never runs. It is skipped after success, and omitted after a failure, which then counts."""
        needs = [
            each for task in dag.tasks.values() if task.trigger_policy.strategy == ALWAYS for each in upstream(task)
        ]
        depends = self._depends(dag, needs, always=False)
        if not depends:
            return None
        if NOTHING not in self._taken:
            self.made.append({"name": self._reserve(NOTHING, NOTHING), "suspend": {}})
        return {"name": _GUARD, "template": NOTHING, "depends": depends, "when": "false"}

    def _dag_outputs(self, component: Component, dag: Dag, scope: Scope) -> Iterator[dict[str, Any]]:
        for key in component.output_definitions.parameters:
            output = dag.outputs.parameters.get(key)
            if output is None or not output.selectors():
                raise InvalidPipeline(f"{scope.path}.outputs.parameters.{key}", "no task gives this output")
            yield _output(
                key,
                [
                    f"tasks.{each.producer_subtask}.outputs.parameters.{each.output_parameter_key}"
                    for each in output.selectors()
                ],
            )
        for key in component.output_definitions.artifacts:
            chosen = dag.outputs.artifacts.get(key)
            if chosen is None or not chosen.artifact_selectors:
                raise InvalidPipeline(f"{scope.path}.outputs.artifacts.{key}", "no task makes this artifact")
            sources = [
                scope.made_artifact(each.producer_subtask, each.output_artifact_key)
                for each in chosen.artifact_selectors
            ]
            if sources[0].code:  # imported: of an importer there is no choice of branches
                yield {"name": artifact_parameter(key), "valueFrom": {"expression": sources[0].code}}
            else:
                yield _output(artifact_parameter(key), [each.reference for each in sources])


def _output(name: str, references: list[str]) -> dict[str, Any]:
    """Of one task, or of the first of several branches that was taken."""
    if len(references) == 1:
        return {"name": name, "valueFrom": {"parameter": f"{{{{{references[0]}}}}}"}}
    return {"name": name, "valueFrom": {"expression": " ?? ".join(optional_variable(each) for each in references)}}


def _retry(policy: RetryPolicy | None) -> str:
    """kfp counts retries as Argo does: beyond the first attempt. Its backend retries errors of nodes too."""
    if policy is None or policy.max_retry_count <= 0:
        return ""
    backoff: dict[str, Any] = {}
    if policy.backoff_duration and policy.backoff_duration != "0s":
        backoff["duration"] = policy.backoff_duration
    if policy.backoff_factor >= 1:
        backoff["factor"] = str(max(1, round(policy.backoff_factor)))
    if policy.backoff_max_duration and policy.backoff_max_duration != "0s":
        backoff["maxDuration"] = policy.backoff_max_duration
    made: dict[str, Any] = {"limit": str(policy.max_retry_count), "retryPolicy": "Always"}
    return json_of({**made, "backoff": backoff} if "duration" in backoff else made)
