"""What a pipeline refers to must be there: components, executors, tasks, their outputs. Pure.

Raises at the first mistake, with the path of the field. Types of values are judged where they are turned into texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from paddlecloud.kube.cycles import cycle_in
from paddlecloud.pipelines.ir.errors import InvalidPipeline
from paddlecloud.pipelines.ir.pipeline_spec import Component, Dag, PipelineSpec, Task
from paddlecloud.pipelines.ir.platform_spec import KubernetesPlatform
from paddlecloud.pipelines.ir.values import TYPES, text_of

MOST_TASKS = 5_000
_NAME = re.compile(r"[A-Za-z0-9_][-A-Za-z0-9_]{0,126}")
_STRATEGIES = ("", "TRIGGER_STRATEGY_UNSPECIFIED", "ALL_UPSTREAM_TASKS_SUCCEEDED", "ALL_UPSTREAM_TASKS_COMPLETED")


def check(spec: PipelineSpec, platform: KubernetesPlatform) -> None:
    if not spec.pipeline_info.name:
        raise InvalidPipeline("pipelineInfo.name", "required: the name of the pipeline")
    if spec.root.dag is None:
        raise InvalidPipeline("root.dag", "required: the tasks of the pipeline")
    if spec.root.input_definitions.artifacts:
        name = next(iter(spec.root.input_definitions.artifacts))
        raise InvalidPipeline(
            f"root.inputDefinitions.artifacts.{name}",
            "a pipeline takes parameters; import the artifact with dsl.importer",
        )
    tasks = 0
    for path, component in _components(spec):
        tasks += len(component.dag.tasks) if component.dag is not None else 0
        if tasks > MOST_TASKS:
            raise InvalidPipeline(path, f"the pipeline has more than {MOST_TASKS:,} tasks")
        _check_component(spec, component, path)
    _check_nesting(spec)
    for label in platform.deployment_spec.executors:
        if label not in spec.deployment_spec.executors:
            raise _unknown(
                f"platforms.kubernetes.deploymentSpec.executors.{label}",
                "executor",
                label,
                spec.deployment_spec.executors,
            )


def _components(spec: PipelineSpec) -> Iterator[tuple[str, Component]]:
    yield "root", spec.root
    for name, component in spec.components.items():
        yield f"components.{name}", component


def _check_component(spec: PipelineSpec, component: Component, path: str) -> None:
    for side, kinds in (
        ("inputDefinitions", component.input_definitions),
        ("outputDefinitions", component.output_definitions),
    ):
        for name in (*kinds.parameters, *kinds.artifacts):
            if not _NAME.fullmatch(name):
                raise InvalidPipeline(f"{path}.{side}", f"{name[:60]!r} is no name: letters, digits, - and _")
        for name, definition in kinds.parameters.items():
            if definition.parameter_type not in TYPES:
                raise InvalidPipeline(
                    f"{path}.{side}.parameters.{name}.parameterType", f"{definition.parameter_type[:60]!r} is no type"
                )
    for name, given in component.input_definitions.parameters.items():
        if given.default_value is not msgspec.UNSET and given.default_value is not None:
            text_of(
                given.default_value, given.parameter_type, f"{path}.inputDefinitions.parameters.{name}.defaultValue"
            )
    if component.dag is not None:
        _check_dag(spec, component, component.dag, f"{path}.dag")
    elif component.executor_label not in spec.deployment_spec.executors:
        raise _unknown(f"{path}.executorLabel", "executor", component.executor_label, spec.deployment_spec.executors)
    else:
        executor = spec.deployment_spec.executors[component.executor_label]
        if executor.container is None and executor.importer is None:
            raise InvalidPipeline(
                f"deploymentSpec.executors.{component.executor_label}", "has neither a container nor an importer"
            )


def _check_dag(spec: PipelineSpec, component: Component, dag: Dag, path: str) -> None:
    needs: dict[str, list[str]] = {}
    for name, task in dag.tasks.items():
        where = f"{path}.tasks.{name}"
        if not _NAME.fullmatch(name):
            raise InvalidPipeline(f"{path}.tasks", f"{name[:60]!r} is no name of a task: letters, digits, - and _")
        if task.component_ref.name not in spec.components:
            raise _unknown(f"{where}.componentRef.name", "component", task.component_ref.name, spec.components)
        if task.trigger_policy.strategy not in _STRATEGIES:
            raise InvalidPipeline(
                f"{where}.triggerPolicy.strategy", f"{task.trigger_policy.strategy[:60]!r} is not known"
            )
        _check_inputs(spec, component, dag, task, where)
        needs[name] = list(upstream(task))
        for other in task.dependent_tasks:
            if other not in dag.tasks:
                raise _unknown(f"{where}.dependentTasks", "task", other, dag.tasks)
    if cycle := cycle_in(needs):
        raise InvalidPipeline(f"{path}.tasks", f"{' → '.join(cycle[:10])} depend on each other in a circle")
    for key, output in dag.outputs.parameters.items():
        for selector in output.selectors():
            _check_output(
                spec,
                dag,
                selector.producer_subtask,
                selector.output_parameter_key,
                False,
                f"{path}.outputs.parameters.{key}",
            )
    for key, artifact in dag.outputs.artifacts.items():
        for chosen in artifact.artifact_selectors:
            _check_output(
                spec, dag, chosen.producer_subtask, chosen.output_artifact_key, True, f"{path}.outputs.artifacts.{key}"
            )


def _check_inputs(spec: PipelineSpec, component: Component, dag: Dag, task: Task, path: str) -> None:
    for name, given in task.inputs.parameters.items():
        where = f"{path}.inputs.parameters.{name}"
        if given.task_output_parameter is not None:
            made = given.task_output_parameter
            _check_output(spec, dag, made.producer_task, made.output_parameter_key, False, where)
        elif given.component_input_parameter:
            if given.component_input_parameter not in component.input_definitions.parameters:
                known = component.input_definitions.parameters
                raise _unknown(f"{where}.componentInputParameter", "parameter", given.component_input_parameter, known)
        elif given.task_final_status is not None:
            if given.task_final_status.producer_task not in dag.tasks:
                raise _unknown(f"{where}.taskFinalStatus", "task", given.task_final_status.producer_task, dag.tasks)
        elif given.runtime_value is None:
            raise InvalidPipeline(where, "has no source: a task's output, an input of the component, or a constant")
    for name, source in task.inputs.artifacts.items():
        where = f"{path}.inputs.artifacts.{name}"
        if source.task_output_artifact is not None:
            produced = source.task_output_artifact
            _check_output(spec, dag, produced.producer_task, produced.output_artifact_key, True, where)
        elif source.component_input_artifact not in component.input_definitions.artifacts:
            known_artifacts = component.input_definitions.artifacts
            raise _unknown(
                f"{where}.componentInputArtifact", "artifact", source.component_input_artifact, known_artifacts
            )


def _check_output(spec: PipelineSpec, dag: Dag, task: str, key: str, artifact: bool, path: str) -> None:
    if task not in dag.tasks:
        raise _unknown(path, "task", task, dag.tasks)
    maker = spec.components.get(dag.tasks[task].component_ref.name)
    if maker is None:
        return  # reported where the task itself is checked
    outputs: Mapping[str, Any] = maker.output_definitions.artifacts if artifact else maker.output_definitions.parameters
    if key not in outputs:
        raise _unknown(path, f"{'artifact' if artifact else 'output parameter'} of task {task}", key, outputs)


def upstream(task: Task) -> Iterator[str]:
    """The tasks whose end a task waits for."""
    yield from task.dependent_tasks
    for given in task.inputs.parameters.values():
        if given.task_output_parameter is not None:
            yield given.task_output_parameter.producer_task
        if given.task_final_status is not None:
            yield given.task_final_status.producer_task
    for source in task.inputs.artifacts.values():
        if source.task_output_artifact is not None:
            yield source.task_output_artifact.producer_task


def _check_nesting(spec: PipelineSpec) -> None:
    """A component that contains itself would be translated for ever."""
    needs = {
        name: [task.component_ref.name for task in component.dag.tasks.values()] if component.dag is not None else []
        for name, component in spec.components.items()
    }
    if cycle := cycle_in(needs):
        raise InvalidPipeline("components", f"{' → '.join(cycle[:10])} contain each other in a circle")


def _unknown(path: str, what: str, name: str, known: Iterable[str]) -> InvalidPipeline:
    first = sorted(known)
    listed = ", ".join(first[:10]) + (f" and {len(first) - 10} more" if len(first) > 10 else "")
    return InvalidPipeline(path, f"there is no {what} {name[:60]!r}; there are: {listed or 'none'}")
