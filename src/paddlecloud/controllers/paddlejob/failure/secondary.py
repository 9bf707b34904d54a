"""Attributes secondary failures (`PeerLost`, `RendezvousTimeout`) to the primary one.

When a rank dies, its peers abort. Their failures may come first, from other nodes. A dead process is reported within
moments, so a decision on a secondary failure alone waits that long. A dead node is reported only after it has not
answered for a while, which a gang that may be restarted does not wait for: should a pod turn out not to go, its node
was the cause, and the restart is counted as a disruption after all. A job that may not be restarted does wait, because
what it fails with stays.
"""

from __future__ import annotations

import msgspec

from paddlecloud.api.paddlejob import PaddleJobStatus
from paddlecloud.controllers.paddlejob.decision import gang_formation
from paddlecloud.controllers.paddlejob.decision.case import JobCase
from paddlecloud.controllers.paddlejob.failure import cause, policy
from paddlecloud.kube.clock import parse_rfc3339
from paddlecloud.kube.conditions import condition_in

MOMENTS = 3.0
"""Seconds in which another kubelet, or one that has much to report, reports a process that ended."""
NODE_PATIENCE = 90.0
"""Seconds in which a cluster reports a node that was lost: Kubernetes misses it for 50, and pods tolerate 30 more."""


def awaited(case: JobCase) -> float:
    """Seconds for which the decision should wait; 0 where the cause is known, or no pod is left that could be it."""
    pods = tuple(case.current.values())
    if all(pod.state != "failed" for pod in pods) or all(pod.ended for pod in pods) or case.missing:
        return 0.0
    first = cause.failures(pods)[0]
    if first.kind not in cause.SECONDARY or not first.finished:
        return 0.0
    patience = NODE_PATIENCE if policy.judge(case, first).action == "Fail" else MOMENTS
    passed = case.now - max(parse_rfc3339(moment) for moment in (first.finished, *_unready_since(case, first.pod)))
    return max(0.0, patience - passed) if passed > -1.0 else 0.0  # a node whose clock is ahead is not waited for


def _unready_since(case: JobCase, name: str) -> list[str]:
    """When a kubelet reported that the pod is no longer ready: it may have been away itself when that happened."""
    pod = next(pod for pod in case.current.values() if pod.name == name)
    ready = condition_in(pod.status.get("conditions") or (), "Ready") or {}
    return [str(ready["lastTransitionTime"])] if ready.get("lastTransitionTime") else []


def reconsidered(case: JobCase) -> PaddleJobStatus:
    """The status, in which a restart for a secondary failure is a disruption if one of its pods does not go."""
    records = list(case.old.failures or ())
    if case.phase != "Restarting" or not records or records[-1].failure_class not in cause.SECONDARY:
        return case.old
    stuck = next((pod for pod in case.stale if gang_formation.is_stuck(case, pod)), None)
    if stuck is None:
        return case.old
    text = f"the pod did not go: node {stuck.node} does not answer"
    records[-1] = msgspec.structs.replace(
        records[-1], pod=stuck.name, node=stuck.node, failure_class="NodeLost", exit_code=None, message=text
    )
    return msgspec.structs.replace(
        case.old,
        failures=records,
        restarts=((case.old.restarts or 1) - 1) or None,
        disruptions=(case.old.disruptions or 0) + 1,
    )
