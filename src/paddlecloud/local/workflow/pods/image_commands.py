"""Containers without a `command` run what their image says, also where the executor starts them. Pure.

As Argo's controller, which asks the registry for the entrypoint of such an image (workflow/controller/entrypoint): the
executor needs a command to start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from paddlecloud.local.images.environment import ImageProgram
from paddlecloud.local.workflow.templates import Template

Programs = Callable[[str], "ImageProgram | None"]
"""What an image runs by itself; None where no recipe answers for it."""


def with_commands(template: Template, programs: Programs) -> Template:
    """The template, with a command for each of its containers whose image has one."""
    made = dict(template)
    for kind in ("container", "script"):
        if kind in made:
            made[kind] = _with_command(made[kind], programs)
    if "containerSet" in made:
        inner = [_with_command(each, programs) for each in made["containerSet"].get("containers") or ()]
        made["containerSet"] = {**made["containerSet"], "containers": inner}
    if made.get("sidecars"):
        made["sidecars"] = [_with_command(each, programs) for each in made["sidecars"]]
    return made


def _with_command(container: Mapping[str, Any], programs: Programs) -> Mapping[str, Any]:
    """As Kubernetes: the entrypoint of the image, then `args`, or the image's own arguments where there are none."""
    if container.get("command"):
        return container
    found = programs(str(container.get("image", "")))
    if found is None:
        return container
    words = [*found.entrypoint, *(container.get("args") or found.cmd)]
    if not words:
        return container
    if found.entrypoint:
        return {**container, "command": list(found.entrypoint), "args": words[len(found.entrypoint) :]}
    return {**container, "command": words, "args": []}
