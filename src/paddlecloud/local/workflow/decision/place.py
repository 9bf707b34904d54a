"""Where in the tree of a workflow a template is carried out, for whom, and how its node is described. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paddlecloud.local.workflow.nodes import Node
from paddlecloud.local.workflow.templates import Holder, Library, Template, TemplateError

_DISPLAY_NAME = "workflows.argoproj.io/display-name"
_DISPLAYED = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9-.]{0,61}[a-zA-Z0-9]")


@dataclass(frozen=True)
class Place:
    """Where in the tree a template is carried out."""

    library: Library
    boundary: str = ""
    depth: int = 0
    on_exit: bool = False
    parallelism: int | None = None
    """Pods, and templates of templates, at a time right below this template."""
    around: Template = field(default_factory=dict)
    """The template whose steps or tasks are carried out here."""

    def inside(self, library: Library, node: Node, template: Template) -> Place:
        limit = template.get("parallelism")
        most = int(limit) if limit and int(limit) > 0 else None  # Argo's HasParallelism: kfp 1 writes 0 for no limit
        return Place(library, node["id"], self.depth + 1, self.on_exit, most, template)


@dataclass(frozen=True)
class Execution:
    """A template that a node carries out, with its inputs filled in."""

    name: str
    """Of the node."""
    template: Template
    kind: str
    holder: Holder
    """The step, task or hook that names the template."""
    library: Library
    """Where the steps and tasks of the template find theirs."""
    place: Place
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the node when it is added."""

    def described(self) -> dict[str, Any]:
        return {**described_by(self.holder, self.place, self.template), **self.fields}


def shown_as(template: Template) -> str | None:
    """The name that a template gives its node, in its own annotation."""
    wanted = (template.get("annotations") or {}).get(_DISPLAY_NAME)
    if wanted and not _DISPLAYED.fullmatch(str(wanted)):
        raise TemplateError(f"displayName must match the regex {_DISPLAYED.pattern}")
    return wanted or None


def described_by(holder: Holder, place: Place, template: Template) -> dict[str, Any]:
    """The fields of a node that say what it carries out."""
    reference = holder.get("templateRef")
    inputs = template.get("inputs")
    return {
        "templateScope": place.library.scope,
        "templateName": None if reference else holder.get("template") or template.get("name") or None,
        "templateRef": reference,
        "inputs": inputs or None,
    }
