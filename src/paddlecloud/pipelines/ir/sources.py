"""Where the text of an input comes from, and how Argo is asked for it: as it stands, by a tag, by an expression. Pure.

Expressions are in expr-lang, as Argo evaluates them in `{{=…}}`. No two closing braces may meet inside of one: the
first pair ends the tag.
"""

from __future__ import annotations

import re

import msgspec

SIMPLE_TYPES = ("NUMBER_INTEGER", "NUMBER_DOUBLE", "BOOLEAN")
ARTIFACT = "ARTIFACT"
"""The type of a reference to an artifact: JSON with its name, type, uri, key and metadata."""
_BRACES = re.compile(r"\{(?=\{)|\}(?=\})")


class ValueSource(msgspec.Struct, frozen=True, kw_only=True):
    """One of `literal`, `reference` (a variable of Argo) and `expression` is there. `kind` is the type of the value."""

    kind: str
    literal: str | None = None
    reference: str = ""
    code: str = ""
    imported: bool = False
    """Of artifacts: whether it may be one that no step made, and Argo's repository does not have."""

    def argument(self) -> str:
        """The text for Argo's `value`."""
        if self.literal is not None:
            return literal_text(self.literal)
        return f"{{{{{self.reference}}}}}" if self.reference else tag(self.code)

    def expression(self) -> str:
        """The same for use inside an expression."""
        if self.literal is not None:
            return quoted(self.literal)
        return variable(self.reference) if self.reference else f"({self.code})"

    def typed(self) -> str:
        """The value with its type, inside an expression."""
        text = self.expression()
        if self.kind == "STRING":
            return text
        if self.kind == "NUMBER_INTEGER":
            return f"int({text})"
        if self.kind == "NUMBER_DOUBLE":
            return f"float({text})"
        return f"({text} == 'true')" if self.kind == "BOOLEAN" else f"fromJSON({text})"


def tag(code: str) -> str:
    return "{{=" + code + "}}"


def quoted(text: str) -> str:
    """A string of expr-lang, without braces that could begin or end a tag."""
    text = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return "'" + _BRACES.sub(lambda match: match[0] + "' + '", text) + "'"


def literal_text(text: str) -> str:
    """A text that Argo leaves as it is: pairs of braces are written by an expression."""
    return text.replace("{{", "{{='{' + '{'}}") if "{{" in text else text


def variable(reference: str) -> str:
    """`tasks.a-b.outputs.parameters.c` as an expression. Names have no dots."""
    first, *rest = reference.split(".")
    return first + "".join(f".{part}" if part.isidentifier() else f"['{part}']" for part in rest)


def optional_variable(reference: str) -> str:
    """As `variable`, of what a task that failed or was skipped did not make: nil then.

    Only what comes behind `tasks.NAME.outputs` is optional. Argo also evaluates the expressions of a DAG before its
    tasks have run, when `tasks` has no more than a `name`, and an expression that has a value then, its default, is
    not evaluated again (util/template/expression_template.go). One that fails is.
    """
    tasks, task, outputs, *rest = reference.split(".")
    made = variable(f"{tasks}.{task}.{outputs}")
    return made + "".join(f"?.{part}" if part.isidentifier() else f"?.['{part}']" for part in rest)


def artifact_parameter(name: str) -> str:
    """The parameter that refers to an artifact."""
    return f"artifact-{name}"
