"""The embedded platform's controllers have the chart's accounts and rules, so that a gap in them shows on a laptop."""

from __future__ import annotations

import pytest
from rendered import CHART

from chart_rights import granted
from paddlecloud.kube.resource import Object
from paddlecloud.platform.chart import ACCOUNTS, chart, controller_accounts
from unit.chart.test_chart_rendering import render


def test_the_chart_that_the_package_carries_is_the_one_that_helm_installs() -> None:
    assert chart() == CHART


@pytest.mark.parametrize("account", ACCOUNTS.values())
def test_an_embedded_controller_may_do_what_the_chart_lets_it_do_and_nothing_else(account: str) -> None:
    of_the_chart = render("paddlejob.kubeflow=true", "models.enabled=true", "tenants.enabled=true")
    everywhere = granted(_of_all_namespaces(of_the_chart))
    assert {"paddlejob-sa", "sampleset-sa", "paddle-serving-sa"} <= everywhere.keys()
    embedded = controller_accounts()
    assert granted(_of_all_namespaces(embedded))[account] == everywhere[account]
    assert granted(embedded)[account] <= granted(of_the_chart)[account]


def _of_all_namespaces(objects: list[Object]) -> list[Object]:
    return [each for each in objects if each["kind"] not in ("Role", "RoleBinding")]
