"""A PaddleJob as YAML, to read and to copy."""

from __future__ import annotations

from typing import NamedTuple

from paddlecloud.kube.resource import PADDLEJOBS, Object
from paddlecloud.ui.asked import Asked, DashboardPage, found
from paddlecloud.ui.yaml_text import yaml_text


class JobYamlView(NamedTuple):
    job: Object
    text: str

    @property
    def meta(self) -> Object:
        meta: Object = self.job["metadata"]
        return meta


async def load(asked: Asked) -> JobYamlView:
    job = found(await asked.reader.get(PADDLEJOBS, asked.params["namespace"], asked.params["name"]))
    return JobYamlView(job, await yaml_text(job))


PAGE = DashboardPage("job_yaml", "/jobs/{namespace}/{name}/yaml", load)
