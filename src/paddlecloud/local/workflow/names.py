"""Names that Argo gives: ids of nodes, names of pods, and what `kube.argo` has for everybody. Pure."""

from __future__ import annotations

from paddlecloud.api.argo import GROUP as GROUP
from paddlecloud.kube.argo import CLUSTER_TEMPLATES as CLUSTER_TEMPLATES
from paddlecloud.kube.argo import COMPLETED as COMPLETED
from paddlecloud.kube.argo import CONFIG_MAP_TYPE as CONFIG_MAP_TYPE
from paddlecloud.kube.argo import CRON_COMPLETED as CRON_COMPLETED
from paddlecloud.kube.argo import CRON_WORKFLOW as CRON_WORKFLOW
from paddlecloud.kube.argo import CRON_WORKFLOWS as CRON_WORKFLOWS
from paddlecloud.kube.argo import LAST_SCHEDULE as LAST_SCHEDULE
from paddlecloud.kube.argo import NODE_ID as NODE_ID
from paddlecloud.kube.argo import NODE_NAME as NODE_NAME
from paddlecloud.kube.argo import PHASE as PHASE
from paddlecloud.kube.argo import POD_NAMES as POD_NAMES
from paddlecloud.kube.argo import SCHEDULED_TIME as SCHEDULED_TIME
from paddlecloud.kube.argo import TEMPLATES as TEMPLATES
from paddlecloud.kube.argo import WORKFLOW as WORKFLOW
from paddlecloud.kube.argo import WORKFLOWS as WORKFLOWS

_LONGEST_STEM = 253 - 10 - 1
"""Of a pod's name, before the hash (Argo's workflow/util/pod_name.go)."""


def node_id(workflow: str, name: str) -> str:
    return workflow if name == workflow else f"{workflow}-{fnv(name)}"


def pod_name(workflow: str, node: str, template: str) -> str:
    if node == workflow:
        return workflow
    stem = workflow if not template else f"{workflow}-{template}"
    return f"{stem[:_LONGEST_STEM]}-{fnv(node)}"


def fnv(text: str) -> int:
    """FNV-1a of 32 bits."""
    digest = 0x811C9DC5
    for byte in text.encode():
        digest = (digest ^ byte) * 0x01000193 % 2**32
    return digest
