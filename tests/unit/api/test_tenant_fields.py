"""Every field that can name something foreign has a row in the tenant matrix, which tests/scenarios tries out."""

from __future__ import annotations

import pytest

from paddlecloud.api.catalogue import EMBEDDED_KINDS
from scenarios.tenant_matrix import CLASSES, VALIDATED, VALIDATIONS, VERDICTS, Matrix, fields, marks

MATRIX = Matrix()


@pytest.mark.parametrize("kind", [kind.name for kind in EMBEDDED_KINDS])
def test_every_field_that_takes_a_free_text_has_a_row_and_every_row_a_field(kind: str) -> None:
    present, known = set(fields()[kind]), set(MATRIX.rows.get(kind, {}))
    assert not present - known, "say in tenant_matrix.yaml what a tenant can name with these, and what comes of it"
    assert not known - present, "rows of fields that are gone"


def test_every_list_of_fields_that_the_validation_of_workflows_has_is_looked_at() -> None:
    """A list that is new there, for fields that are new, is in the walk, too."""
    looked_at = {name for kind in VALIDATED.values() for names in kind.values() for name in names}
    for module in VALIDATIONS:
        lists = {name: value for name, value in vars(module).items() if isinstance(value, frozenset)}
        assert {name: value - looked_at for name, value in lists.items() if value - looked_at} == {}, module.__name__


def test_every_mark_that_controllers_know_has_a_row_and_every_row_a_mark() -> None:
    assert not marks() - set(MATRIX.marks), "say in tenant_matrix.yaml what a tenant can do with these"
    assert not set(MATRIX.marks) - marks(), "rows of marks that are gone"


@pytest.mark.parametrize("kind", list(MATRIX.rows))
def test_a_row_has_one_class_and_an_attack_a_verdict_for_each_platform(kind: str) -> None:
    for field, row in MATRIX.rows[kind].items():
        assert len(set(row) & set(CLASSES)) == len(row) == 1, field
        for tried in row.get("attack", ()):
            for platform in ("embedded", "cluster"):
                verdicts = set({**tried, **tried.get(platform, {})}) & set(VERDICTS)
                assert len(verdicts) == 1, f"{field} {tried['value']} on {platform}: {verdicts or 'no verdict'}"
