"""Starting and stopping a platform, as far as no process is needed; test_platform_life.py has the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlecloud.platform import lifecycle
from paddlecloud.platform.lifecycle import PlatformFailed, StartOptions


@pytest.mark.parametrize("nodes", [-1, 0, 65])
def test_given_a_number_of_nodes_out_of_range_when_started_then_nothing_is_made(tmp_path: Path, nodes: int) -> None:
    with pytest.raises(PlatformFailed, match="1 to 64 nodes") as refused:
        lifecycle.start(tmp_path / "data", StartOptions(nodes=nodes))
    assert refused.value.cause == "usage"
    assert not (tmp_path / "data").exists()


def test_given_a_failure_then_its_text_names_the_cause_and_the_next_step() -> None:
    error = PlatformFailed("it did not start", why="the disk is full", next="pdc doctor")
    assert str(error) == "it did not start: the disk is full; next: pdc doctor"


def test_given_no_platform_then_it_is_stopped_and_stopping_does_nothing(tmp_path: Path) -> None:
    assert lifecycle.status(tmp_path).state == "stopped"
    assert lifecycle.stop(tmp_path) == (False, False, None)
