"""The embedded platform's controllers have the chart's accounts and rules, so that a gap in them shows on a laptop."""

from __future__ import annotations

import pytest
from rendered import CHART

from chart_rights import granted
from paddlecloud.platform.chart import ACCOUNTS, chart, controller_accounts
from unit.chart.test_chart_rendering import render


def test_the_chart_that_the_package_carries_is_the_one_that_helm_installs() -> None:
    assert chart() == CHART


@pytest.mark.parametrize("account", ACCOUNTS.values())
def test_an_embedded_controller_may_do_what_the_chart_lets_it_do_and_nothing_else(account: str) -> None:
    everywhere = [
        each
        for each in render("paddlejob.kubeflow=true", "models.enabled=true")
        if each["kind"] not in ("Role", "RoleBinding")
    ]
    of_the_chart = granted(everywhere)
    assert {"paddlejob-sa", "sampleset-sa", "paddle-serving-sa"} <= of_the_chart.keys()
    assert granted(controller_accounts())[account] == of_the_chart[account]
