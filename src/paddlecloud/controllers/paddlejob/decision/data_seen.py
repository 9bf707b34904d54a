"""Which state of its sample sets a job reads: that of the moment when its pods start, whatever is synced later.

What versions of models record of their data comes from here. A gang that is formed anew reads anew.
"""

from __future__ import annotations

import msgspec

from paddlecloud.api.paddlejob import PaddleJobStatus
from paddlecloud.api.paddlejob.status import DataSeen
from paddlecloud.controllers.paddlejob.decision.case import JobCase
from paddlecloud.kube.resource import Object

_NOT_BEGUN = frozenset({"pending", "starting"})


def noted(case: JobCase, new: PaddleJobStatus) -> PaddleJobStatus:
    seen = [_seen(one) for one in case.observed.mounted_sets if (one.get("status") or {}).get("content")]
    if not all(pod.state in _NOT_BEGUN for pod in case.current.values()):
        now = {(one.uid, one.revision): one for one in seen}
        # Figures of a state of the data that has just come about are measured a moment later.
        seen = [now.get((one.uid, one.revision), one) for one in case.old.data or ()]
    return msgspec.structs.replace(new, data=seen or None)


def _seen(sample_set: Object) -> DataSeen:
    meta, content = sample_set["metadata"], sample_set["status"]["content"]
    return DataSeen(
        name=meta["name"],
        uid=meta["uid"],
        revision=content.get("revision"),
        changed_at=content.get("changedAt"),
        files=content.get("files"),
        bytes=content.get("bytes"),
    )
