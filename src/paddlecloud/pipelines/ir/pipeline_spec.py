"""The IR of kfp 2 as types: the fields of pipeline_spec.proto that a pipeline can hold, with the names of its JSON.

A field that is not here is refused by its name, since it would be ignored otherwise. Values of parameters are JSON.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Message(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """Messages of the proto: camelCase in JSON, every field optional."""


class ArtifactType(Message):
    schema_title: str = ""
    schema_uri: str = ""
    instance_schema: str = ""
    schema_version: str = ""


class InputArtifactDefinition(Message):
    artifact_type: ArtifactType = msgspec.field(default_factory=ArtifactType)
    is_artifact_list: bool = False
    is_optional: bool = False
    description: str = ""


class InputParameterDefinition(Message):
    parameter_type: str = "STRING"
    default_value: Any = msgspec.UNSET
    is_optional: bool = False
    description: str = ""
    literals: list[Any] = []


class InputDefinitions(Message):
    parameters: dict[str, InputParameterDefinition] = {}
    artifacts: dict[str, InputArtifactDefinition] = {}


class OutputArtifactDefinition(Message):
    artifact_type: ArtifactType = msgspec.field(default_factory=ArtifactType)
    metadata: dict[str, Any] = {}
    properties: dict[str, Any] = {}
    custom_properties: dict[str, Any] = {}
    is_artifact_list: bool = False
    description: str = ""


class OutputParameterDefinition(Message):
    parameter_type: str = "STRING"
    description: str = ""


class OutputDefinitions(Message):
    parameters: dict[str, OutputParameterDefinition] = {}
    artifacts: dict[str, OutputArtifactDefinition] = {}


class ValueOrParameter(Message):
    constant: Any = msgspec.UNSET
    runtime_parameter: str = ""


class TaskOutputParameter(Message):
    producer_task: str
    output_parameter_key: str


class TaskFinalStatus(Message):
    producer_task: str


class InputParameter(Message):
    """Where the value of a parameter comes from: one of the first four."""

    task_output_parameter: TaskOutputParameter | None = None
    runtime_value: ValueOrParameter | None = None
    component_input_parameter: str = ""
    task_final_status: TaskFinalStatus | None = None
    parameter_expression_selector: str = ""


class TaskOutputArtifact(Message):
    producer_task: str
    output_artifact_key: str


class InputArtifact(Message):
    task_output_artifact: TaskOutputArtifact | None = None
    component_input_artifact: str = ""


class TaskInputs(Message):
    parameters: dict[str, InputParameter] = {}
    artifacts: dict[str, InputArtifact] = {}


class TaskInfo(Message):
    name: str = ""


class CachingOptions(Message):
    enable_cache: bool = False
    cache_key: str = ""


class ComponentRef(Message):
    name: str


class TriggerPolicy(Message):
    condition: str = ""
    strategy: str = ""


class ArtifactItems(Message):
    input_artifact: str = ""


class ArtifactIterator(Message):
    items: ArtifactItems
    item_input: str


class ParameterItems(Message):
    raw: str = ""
    input_parameter: str = ""


class ParameterIterator(Message):
    items: ParameterItems
    item_input: str


class RetryPolicy(Message):
    max_retry_count: int = 0
    backoff_duration: str = ""
    backoff_factor: float = 0.0
    backoff_max_duration: str = ""


class IteratorPolicy(Message):
    parallelism_limit: int = 0


class Task(Message):
    component_ref: ComponentRef
    task_info: TaskInfo = msgspec.field(default_factory=TaskInfo)
    inputs: TaskInputs = msgspec.field(default_factory=TaskInputs)
    dependent_tasks: list[str] = []
    caching_options: CachingOptions = msgspec.field(default_factory=CachingOptions)
    trigger_policy: TriggerPolicy = msgspec.field(default_factory=TriggerPolicy)
    artifact_iterator: ArtifactIterator | None = None
    parameter_iterator: ParameterIterator | None = None
    retry_policy: RetryPolicy | None = None
    iterator_policy: IteratorPolicy = msgspec.field(default_factory=IteratorPolicy)


class ArtifactSelector(Message):
    producer_subtask: str
    output_artifact_key: str


class DagOutputArtifact(Message):
    artifact_selectors: list[ArtifactSelector] = []


class ParameterSelector(Message):
    producer_subtask: str
    output_parameter_key: str


class ParameterSelectors(Message):
    parameter_selectors: list[ParameterSelector] = []


class DagOutputParameter(Message):
    value_from_parameter: ParameterSelector | None = None
    value_from_oneof: ParameterSelectors | None = None

    def selectors(self) -> list[ParameterSelector]:
        if self.value_from_parameter is not None:
            return [self.value_from_parameter]
        return list(self.value_from_oneof.parameter_selectors) if self.value_from_oneof is not None else []


class DagOutputs(Message):
    artifacts: dict[str, DagOutputArtifact] = {}
    parameters: dict[str, DagOutputParameter] = {}


class Dag(Message):
    tasks: dict[str, Task] = {}
    outputs: DagOutputs = msgspec.field(default_factory=DagOutputs)


class Component(Message):
    input_definitions: InputDefinitions = msgspec.field(default_factory=InputDefinitions)
    output_definitions: OutputDefinitions = msgspec.field(default_factory=OutputDefinitions)
    dag: Dag | None = None
    executor_label: str = ""
    single_platform_specs: list[Any] = []
    task_config_passthroughs: list[Any] = []


class PipelineInfo(Message):
    name: str = ""
    display_name: str = ""
    description: str = ""


class Accelerator(Message):
    type: str = ""
    count: str | int = ""
    resource_type: str = ""
    resource_count: str = ""


class Resources(Message):
    cpu_limit: float = 0.0
    cpu_request: float = 0.0
    memory_limit: float = 0.0
    memory_request: float = 0.0
    resource_cpu_limit: str = ""
    resource_cpu_request: str = ""
    resource_memory_limit: str = ""
    resource_memory_request: str = ""
    accelerator: Accelerator | None = None


class EnvVar(Message):
    name: str
    value: str = ""


class Container(Message):
    image: str
    command: list[str] = []
    args: list[str] = []
    env: list[EnvVar] = []
    resources: Resources = msgspec.field(default_factory=Resources)


class Importer(Message):
    artifact_uri: ValueOrParameter
    type_schema: ArtifactType = msgspec.field(default_factory=ArtifactType)
    metadata: dict[str, Any] = {}
    properties: dict[str, Any] = {}
    custom_properties: dict[str, Any] = {}
    reimport: bool = False


class Executor(Message):
    container: Container | None = None
    importer: Importer | None = None


class Deployment(Message):
    executors: dict[str, Executor] = {}


class PipelineSpec(Message):
    root: Component
    pipeline_info: PipelineInfo = msgspec.field(default_factory=PipelineInfo)
    components: dict[str, Component] = {}
    deployment_spec: Deployment = msgspec.field(default_factory=Deployment)
    schema_version: str = ""
    sdk_version: str = ""
    default_pipeline_root: str = ""
