"""A trace as a tree: the object, where it came from, and what was made of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paddlecloud.cli.control_characters import visible
from paddlecloud.cli.phrases import say
from paddlecloud.kube.sizes import size
from paddlecloud.sdk.lineage import CHANGED, GONE, REPLACED, VERSION, Lineage, LineageNode

LONGEST = 80
"""Characters of one fact; `-o json` has all of it."""
STATES = {GONE: "trace-gone", REPLACED: "trace-replaced", CHANGED: "trace-changed"}
PLAIN = ("image", "command", "source", "model", "phase", "framework")
"""Facts that need no words around them."""


def tree(found: Lineage, language: str) -> list[str]:
    groups = [("trace-from", found.origin), ("trace-to", found.use)]
    shown = [(say(language, heading), nodes) for heading, nodes in groups if nodes]
    lines = [_line(found.node, language)]
    if not found.origin and found.node.kind == VERSION:
        lines.append(f"   {say(language, 'trace-unrecorded')}")
    for index, (heading, nodes) in enumerate(shown):
        last = index == len(shown) - 1
        lines.append(f"{_branch(last)}{heading}")
        lines += _below(nodes, language, "   " if last else "│  ")
    return lines


def _below(nodes: Sequence[LineageNode], language: str, indent: str) -> list[str]:
    lines = []
    for index, node in enumerate(nodes):
        last = index == len(nodes) - 1
        lines.append(f"{indent}{_branch(last)}{_line(node, language)}")
        lines += _below(node.children, language, indent + ("   " if last else "│  "))
    return lines


def _branch(last: bool) -> str:
    return "└─ " if last else "├─ "


def _line(node: LineageNode, language: str) -> str:
    facts = [visible(_cut(text)) for text in facts_of(node, language)]
    return "  ".join([f"{node.kind}/{visible(node.name)}", " · ".join(facts)]).rstrip()


def facts_of(node: LineageNode, language: str) -> list[str]:
    facts: dict[str, Any] = node.facts
    texts = [say(language, STATES[node.state])] if node.state in (GONE, REPLACED) else []
    texts.append(", ".join(facts.get("aliases") or ()))
    texts += [str(facts[name]) for name in PLAIN if name in facts]
    if "ready" in facts:
        texts.append(say(language, "trace-ready" if facts["ready"] else "trace-not-ready"))
    if "percent" in facts:
        texts.append(f"{facts['percent']} %")
    if state := [name for name in ("revision", "generation") if name in facts][:1]:
        texts.append(say(language, f"trace-{state[0]}", number=facts[state[0]]))
    if "files" in facts:
        one = str(facts["files"]) == "1"
        texts.append(say(language, "trace-file" if one else "trace-files", number=facts["files"]))
    if "size" in facts:
        texts.append(size(facts["size"]) if isinstance(facts["size"], int) else str(facts["size"]))
    if "step" in facts:
        texts.append(say(language, "trace-step", step=facts["step"], run=facts.get("run-name", "")))
    if "commit" in facts:
        texts.append(say(language, "trace-commit", commit=str(facts["commit"])[:12]))
    texts += [f"{name} {value:g}" for name, value in (facts.get("metrics") or {}).items()]
    if node.state == CHANGED:
        changed = ", ".join(f"{name} {value}" for name, value in facts["now"].items())
        texts.append(say(language, "trace-changed", now=changed))
    return [text for text in texts if text]


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
