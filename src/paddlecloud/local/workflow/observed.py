"""What one pass knows of the world around its workflow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paddlecloud.kube.resource import Object
from paddlecloud.local.workflow import memoization
from paddlecloud.local.workflow.image_commands import Programs
from paddlecloud.local.workflow.locks import Lock, Locks
from paddlecloud.local.workflow.templates import ConfigMapValue


@dataclass(frozen=True)
class Observed:
    """`pods` by the id of their node; `claims` and `budgets` that it owns; `reports` by the id of the node, of pods
    whose outputs were collected; `specs` gives that of a WorkflowTemplate; `config_map` a value of a ConfigMap;
    `locks` who else has and wants a lock; `cache` a ConfigMap of the namespace, by its name; `programs` what an image
    runs by itself; `is_large` whether the nodes are packed; `refused` why the API server did not create a pod, by the
    id of its node, or a claim, by its name."""

    pods: Mapping[str, Object] = field(default_factory=dict)
    claims: Sequence[Object] = ()
    budgets: Sequence[Object] = ()
    reports: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    specs: Callable[[str, bool], Mapping[str, Any] | None] = lambda name, clusterwide: None
    config_map: ConfigMapValue = lambda name, key: None
    locks: Locks = lambda wanted: Lock()
    cache: memoization.ConfigMap = lambda name: None
    programs: Programs = lambda image: None
    is_large: bool = False
    refused: Mapping[str, str] = field(default_factory=dict)
