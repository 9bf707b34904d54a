"""backoffLimitPerIndex: each index of a Job may fail so many times, and the others go on. Pure.

As pkg/controller/job/indexed_job_utils.go: how often an index failed before is an annotation of its newest pod, so
that it is known also when earlier pods are gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paddlecloud.kube.resource import Object
from paddlecloud.local.workloads.job.failure import ConditionCause, action_for, delay, without_shutdowns
from paddlecloud.local.workloads.job.indexes import Indexes
from paddlecloud.local.workloads.job.members import finished_at, index_of

FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count"


class IndexFailures:
    """The failed pods of a Job, by index. Without a limit for each index nothing is ever reported by them."""

    def __init__(self, job: Object, failed: Sequence[Object], known: Indexes) -> None:
        """`known` are the indexes that are reported to have failed already."""
        self._job = job
        self._limit = job["spec"].get("backoffLimitPerIndex")
        self._last: dict[int, Object] = {}
        self.indexes = Indexes()
        if self._limit is None:
            return
        own = without_shutdowns(failed)
        for pod in own:
            index = index_of(pod)
            if index is not None and _attempts(pod) >= _attempts(self._last.get(index)):
                self._last[index] = pod
        completions = int(job["spec"].get("completions") or 0)
        self.indexes = known | Indexes.of(self._ended(own), below=completions)

    @property
    def limited(self) -> bool:
        return self._limit is not None

    def _ended(self, failed: Iterable[Object]) -> Iterable[int]:
        for pod in failed:
            index, action = index_of(pod), action_for(self._job, pod)
            exhausted = action != "Ignore" and _number(pod, FAILURES) >= int(self._limit or 0)
            if index is not None and (action == "FailIndex" or exhausted):
                yield index

    def verdict(self, completed: Indexes) -> ConditionCause | None:
        spec = self._job["spec"]
        most = spec.get("maxFailedIndexes")
        if most is not None and len(self.indexes) > int(most):
            text = "Job has exceeded the specified maximal number of failed indexes"
            return ConditionCause("MaxFailedIndexesExceeded", text)
        if self.indexes and len(self.indexes | completed) >= int(spec.get("completions") or 0):
            return ConditionCause("FailedIndexes", "Job has failed indexes")
        return None

    def annotations(self, index: int) -> dict[str, str]:
        """For the next pod of an index."""
        if not self.limited:
            return {}
        last = self._last.get(index)
        ignored = last is not None and action_for(self._job, last) == "Ignore"
        failures = _number(last, FAILURES) + (last is not None and not ignored)
        overlooked = _number(last, IGNORED) + ignored
        return {FAILURES: str(failures), **({IGNORED: str(overlooked)} if overlooked else {})}

    def wait(self, index: int, now: float) -> float:
        """Seconds until an index may have its next pod."""
        last = self._last.get(index)
        return 0.0 if last is None else max(0.0, finished_at(last) + delay(_attempts(last)) - now)


def _attempts(pod: Object | None) -> int:
    """How many pods of the index have failed with this one."""
    return 0 if pod is None else _number(pod, FAILURES) + _number(pod, IGNORED) + 1


def _number(pod: Object | None, annotation: str) -> int:
    text = ((pod or {"metadata": {}})["metadata"].get("annotations") or {}).get(annotation, "")
    return int(text) if text.isdecimal() and len(text) < 10 else 0
