"""All curves that are known of a job: those that it reported, and those that were read of its records."""

from __future__ import annotations

import os.path
from collections.abc import Mapping
from typing import NamedTuple

from paddlecloud.kube.resource import Object
from paddlecloud.ui.asked import Asked
from paddlecloud.ui.curves import Series


class JobCurves(NamedTuple):
    reported: Series
    runs: Mapping[str, Series]
    reading: bool
    problem: str

    def sources(self, name: str) -> dict[str, Series]:
        """What lines are called: as the job and, where it wrote into several folders, the folder."""
        if len(self.runs) < 2:
            both = {**self.reported, **next(iter(self.runs.values()), {})}
            return {name: both} if both else {}
        common = os.path.commonpath(self.runs) if all(map(os.path.isabs, self.runs)) else ""
        found = {f"{name} {os.path.relpath(run, common) if common else run}": self.runs[run] for run in self.runs}
        return {**({name: self.reported} if self.reported else {}), **found}


async def of(asked: Asked, job: Object, *, follows: bool) -> JobCurves:
    """A page that `follows` has the records of a running job read while it is open, which is a program in its pod."""
    reader = asked.curves
    asked.reader.reads.add(reader.dependency(job))
    if follows and not asked.quick:
        reader.follow(job)
    kept = reader.found(job)
    reported = await asked.reader.reported(job)
    return JobCurves(reported, kept.runs if kept else {}, reader.is_reading(job), kept.problem if kept else "")
