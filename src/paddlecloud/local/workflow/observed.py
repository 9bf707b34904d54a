"""What one pass knows of the world around its workflow."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paddlecloud.kube.resource import Object
from paddlecloud.local.store.record import Record
from paddlecloud.local.workflow.decision import memoization
from paddlecloud.local.workflow.decision.locks import Lock, Locks
from paddlecloud.local.workflow.pods.image_commands import Programs
from paddlecloud.local.workflow.templates import ConfigMapValue


@dataclass(frozen=True)
class Observed:
    """`pods` by the id of their node; `claims` and `budgets` that it owns; `reports` by the id of the node, of pods
    whose outputs were collected; `specs` gives that of a WorkflowTemplate; `config_map` a value of a ConfigMap;
    `locks` who else has and wants a lock; `cache` a ConfigMap of the namespace, by its name; `is_stored` whether the
    built-in repository has something under a key; `programs` what an image runs by itself; `is_large` whether the nodes
    are packed; `refused` why the API server did not create a pod, by the id of its node, or a claim, by its name;
    `unreadable` why the outputs of its pods could not be collected."""

    pods: Mapping[str, Object] = field(default_factory=dict)
    claims: Sequence[Object] = ()
    budgets: Sequence[Object] = ()
    reports: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    specs: Callable[[str, bool], Mapping[str, Any] | None] = lambda name, clusterwide: None
    config_map: ConfigMapValue = lambda name, key: None
    locks: Locks = lambda wanted: Lock()
    cache: memoization.ConfigMap = lambda name: None
    is_stored: memoization.IsStored = lambda key: True
    programs: Programs = lambda image: None
    is_large: bool = False
    refused: Mapping[str, str] = field(default_factory=dict)
    unreadable: Exception | None = None


def same_in_one_pass(read: Callable[[str], Record | None]) -> memoization.ConfigMap:
    """Each ConfigMap as it was when it was first read, though others write it meanwhile. Records are kept, which the
    store has anyway, and not the objects in them: a pass may read very many."""
    record = functools.cache(read)

    def config_map(name: str) -> Object | None:
        found = record(name)
        return None if found is None else found.object

    return config_map
