"""The second document: what kfp-kubernetes adds to executors, as types (`kubernetes_executor_config.proto`).

Names of objects come twice from kfp: as text, and since 2.14 as the source of a parameter (`…Parameter`), which counts.
"""

from __future__ import annotations

from typing import Any

import msgspec

from paddlecloud.pipelines.ir.pipeline_spec import InputParameter, Message, TaskOutputParameter


class SecretKeyToEnv(Message):
    secret_key: str
    env_var: str


class SecretAsEnv(Message):
    secret_name: str = ""
    secret_name_parameter: InputParameter | None = None
    key_to_env: list[SecretKeyToEnv] = []
    optional: bool = False


class SecretAsVolume(Message):
    mount_path: str
    secret_name: str = ""
    secret_name_parameter: InputParameter | None = None
    optional: bool = False


class ConfigMapKeyToEnv(Message):
    config_map_key: str
    env_var: str


class ConfigMapAsEnv(Message):
    config_map_name: str = ""
    config_map_name_parameter: InputParameter | None = None
    key_to_env: list[ConfigMapKeyToEnv] = []
    optional: bool = False


class ConfigMapAsVolume(Message):
    mount_path: str
    config_map_name: str = ""
    config_map_name_parameter: InputParameter | None = None
    optional: bool = False


class PvcMount(Message):
    mount_path: str
    sub_path: str = ""
    constant: str = ""
    component_input_parameter: str = ""
    task_output_parameter: TaskOutputParameter | None = None
    pvc_name_parameter: InputParameter | None = None


class NodeSelector(Message):
    labels: dict[str, str] = {}
    node_selector_json: InputParameter | None = None


class PodMetadata(Message):
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class ImagePullSecret(Message):
    secret_name: str = ""
    secret_name_parameter: InputParameter | None = None


class FieldPathAsEnv(Message):
    name: str
    field_path: str


class Toleration(Message):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | str | None = None
    toleration_json: InputParameter | None = None


class EphemeralVolume(Message):
    volume_name: str
    mount_path: str
    access_modes: list[str] = []
    size: str = ""
    default_storage_class: bool = False
    storage_class_name: str = ""
    metadata: PodMetadata = msgspec.field(default_factory=PodMetadata)


class Requirement(Message):
    key: str
    operator: str
    values: list[str] = []


class NodeAffinityTerm(Message):
    match_expressions: list[Requirement] = []
    match_fields: list[Requirement] = []
    weight: int | None = None
    node_affinity_json: InputParameter | None = None


class PodAffinityTerm(Message):
    match_pod_expressions: list[Requirement] = []
    match_pod_labels: dict[str, str] = {}
    topology_key: str = ""
    namespaces: list[str] = []
    match_namespace_expressions: list[Requirement] = []
    match_namespace_labels: dict[str, str] = {}
    weight: int | None = None
    anti: bool = False


class SharedMemory(Message):
    volume_name: str = ""
    size: str = ""


class EmptyDirMount(Message):
    volume_name: str
    mount_path: str
    medium: str = ""
    size_limit: str = ""


class SecurityContext(Message):
    run_as_user: int | str | None = None
    run_as_group: int | str | None = None
    run_as_non_root: bool | None = None


class ExecutorConfig(Message):
    secret_as_env: list[SecretAsEnv] = []
    secret_as_volume: list[SecretAsVolume] = []
    config_map_as_env: list[ConfigMapAsEnv] = []
    config_map_as_volume: list[ConfigMapAsVolume] = []
    pvc_mount: list[PvcMount] = []
    node_selector: NodeSelector = msgspec.field(default_factory=NodeSelector)
    pod_metadata: PodMetadata = msgspec.field(default_factory=PodMetadata)
    image_pull_secret: list[ImagePullSecret] = []
    image_pull_policy: str = ""
    active_deadline_seconds: int | str = 0
    field_path_as_env: list[FieldPathAsEnv] = []
    tolerations: list[Toleration] = []
    generic_ephemeral_volume: list[EphemeralVolume] = []
    node_affinity: list[NodeAffinityTerm] = []
    pod_affinity: list[PodAffinityTerm] = []
    enabled_shared_memory: SharedMemory | None = None
    empty_dir_mounts: list[EmptyDirMount] = []
    security_context: SecurityContext | None = None


class PlatformDeployment(Message):
    executors: dict[str, ExecutorConfig] = {}


class PipelineConfig(Message):
    resource_ttl_on_completion: int = 0
    resource_ttl_on_success: int = 0
    resource_ttl_on_failure: int = 0
    active_deadline_seconds: int = 0


class KubernetesPlatform(Message):
    deployment_spec: PlatformDeployment = msgspec.field(default_factory=PlatformDeployment)
    pipeline_config: PipelineConfig = msgspec.field(default_factory=PipelineConfig)
    platform: str = ""
    config: dict[str, Any] = {}


class PlatformSpec(Message):
    platforms: dict[str, KubernetesPlatform] = {}
