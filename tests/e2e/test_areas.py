"""The lists of what is refused and what fails name the specs that they mean, and no others."""

from __future__ import annotations

import re

import pytest
import yaml

from . import areas
from .areas import Area

DISCOVERY = "[sig-api-machinery] AggregatedDiscovery should support aggregated discovery interface"


@pytest.mark.parametrize(
    ("part", "spec", "holds"),
    [
        ("discovery interface", f"{DISCOVERY} for CRDs", True),
        ("discovery interface$", f"{DISCOVERY} for CRDs", False),
        ("discovery interface$", DISCOVERY, True),
        ("[sig-network] DNS", "[sig-network] DNS should resolve", True),
        ("[sig-network] DNS", "[sig-node] DNS should resolve", False),
    ],
)
def test_a_part_names_specs_for_the_page_and_for_the_runner_alike(part: str, spec: str, holds: bool) -> None:
    area = Area("any", (part,), "")
    assert area.holds(spec) is holds
    assert bool(re.search(areas.pattern([area]), f"{spec} [Conformance]")) is holds


def test_labels_of_the_runner_may_stand_between_the_words_of_a_name() -> None:
    area = Area("any", ("Daemon set should run", "[sig-apps] Job should delete a job$"), "")
    text = "[sig-apps] Daemon set [Serial] [Slow] should run and stop [Conformance]"
    assert re.search(areas.pattern([area]), text)
    assert not re.search(areas.pattern([area]), "[sig-apps] Job should delete a job later [Conformance]")


def test_none_of_the_core_is_refused_or_known_to_fail() -> None:
    for name in yaml.safe_load(areas.CORE.read_text(encoding="utf-8")):
        assert areas.find([*areas.refused(), *areas.failures()], name) is None, name
        assert re.search(areas.core(), f"{name} [NodeConformance] [Conformance]"), name


def test_every_area_and_failure_has_a_reason() -> None:
    for area in (*areas.refused(), *areas.failures(), *areas.cluster_failures()):
        assert area.specs, area.name
        assert len(area.why) > 40, area.name
