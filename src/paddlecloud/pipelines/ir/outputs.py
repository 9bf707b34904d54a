"""What the tasks of a pipeline give: the type of an output, and whether an artifact may be an imported one. Pure.

A pipeline declares the output of a loop's body as the list that the loop collects; what one iteration gives follows
from the task that makes it.
"""

from __future__ import annotations

from paddlecloud.pipelines.ir.pipeline_spec import Component, PipelineSpec, Task


class Outputs:
    """Remembers its answers: components may contain each other in many layers."""

    def __init__(self, spec: PipelineSpec) -> None:
        self._spec = spec
        self._kinds: dict[tuple[str, str], str] = {}
        self._imported: dict[tuple[str, str], bool] = {}

    def component_of(self, task: Task) -> Component:
        return self._spec.components[task.component_ref.name]

    def kind_of(self, task: Task, key: str) -> str:
        return "LIST" if iterates(task) else self.kind_in(task.component_ref.name, key)

    def kind_in(self, component: str, key: str) -> str:
        """Of one execution of a component."""
        if (component, key) not in self._kinds:
            found = self._spec.components[component]
            kind = found.output_definitions.parameters[key].parameter_type
            output = found.dag.outputs.parameters.get(key) if found.dag is not None else None
            if found.dag is not None and output is not None and (selectors := output.selectors()):
                producer = found.dag.tasks[selectors[0].producer_subtask]
                kind = self.kind_of(producer, selectors[0].output_parameter_key)
            self._kinds[component, key] = kind
        return self._kinds[component, key]

    def is_importer(self, task: Task) -> bool:
        label = self.component_of(task).executor_label
        executor = self._spec.deployment_spec.executors.get(label)
        return executor is not None and executor.importer is not None

    def may_be_imported(self, task: Task, key: str) -> bool:
        if self.is_importer(task):
            return True
        name = task.component_ref.name
        if (name, key) not in self._imported:
            dag = self.component_of(task).dag
            output = dag.outputs.artifacts.get(key) if dag is not None else None
            self._imported[name, key] = (
                dag is not None
                and output is not None
                and any(
                    self.may_be_imported(dag.tasks[each.producer_subtask], each.output_artifact_key)
                    for each in output.artifact_selectors
                )
            )
        return self._imported[name, key]


def iterates(task: Task) -> bool:
    return task.parameter_iterator is not None or task.artifact_iterator is not None
