"""Which state of its data a set says that it holds: every job that changed files makes another one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from paddlecloud.controllers.sampledata.servers.responses import Figures, JobReport, Progress
from paddlecloud.kube.resource import SAMPLEJOBS, SAMPLESETS
from unit.controllers.sampledata.world import SampleDataCluster, done, failed

ONE, TWO = (Figures(total_bytes=21, total_files=1), Figures(total_bytes=32, total_files=2))


async def content(here: SampleDataCluster, revision: int) -> dict[str, Any]:
    """Of the set, once it holds this state and knows how large it is."""

    async def there() -> Any:
        found = (await here.status(SAMPLESETS, "imagenet")).get("content") or {}
        return found if found.get("revision") == revision and "files" in found else None

    found: dict[str, Any] = await here.until(there)
    return found


def ended(report: JobReport, **progress: int) -> JobReport:
    return msgspec.structs.replace(report, progress=Progress(**progress))


async def test_the_import_is_the_first_state_and_a_sync_that_copied_files_the_next(here: SampleDataCluster) -> None:
    here.servers.figures_of["imagenet-runtime-0"] = ONE
    await here.create_set()
    await here.phase("Ready")
    first = await content(here, 1)
    assert (first["files"], first["bytes"], first.get("changedBy")) == (1, 21, None)
    await here.pass_time(60)
    here.servers.ends["sync"] = ended(done(), files=2, skipped=1, bytes=11)
    here.servers.figures_of["imagenet-runtime-0"] = TWO
    await here.create_job("again", "sync")
    await here.phase("Succeeded", "again", of=SAMPLEJOBS)
    second = await content(here, 2)
    await here.pass_time(60)
    second = await content(here, 2)
    assert (second["files"], second["bytes"], second["changedBy"]) == (2, 32, "again")
    assert second["changedAt"] > first["changedAt"]


@pytest.mark.parametrize(
    ("type", "report", "options", "changes"),
    [
        ("sync", ended(done(), files=5, skipped=5), {}, False),
        ("sync", ended(done(), files=5, skipped=5, deleted=1), {}, True),
        ("sync", ended(done(), files=2), {"syncOptions": {"dry": True}}, False),
        ("sync", ended(failed("away"), files=1), {}, True),
        ("sync", failed("away"), {}, False),
        ("rmr", ended(done(), files=1), {"rmrOptions": {"paths": ["a"]}}, True),
        ("warmup", ended(done(), files=9), {}, False),
    ],
)
async def test_only_a_job_that_changed_files_makes_another_state(
    here: SampleDataCluster, type: str, report: JobReport, options: dict[str, Any], changes: bool
) -> None:
    await here.create_set()
    await here.phase("Ready")
    await content(here, 1)
    await here.pass_time(60)
    here.servers.ends[type] = report
    await here.create_job("work", type, **options)
    await here.phase("Succeeded" if report.state == "Succeeded" else "Failed", "work", of=SAMPLEJOBS)
    await here.pass_time(10)
    assert (await content(here, 1 + changes))["revision"] == 1 + changes
