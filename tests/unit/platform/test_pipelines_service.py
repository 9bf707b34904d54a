"""The Service of the pipelines' API: what users of its namespace change in it is set back."""

from __future__ import annotations

import copy

import pytest

from paddlecloud.kube.resource import Object
from paddlecloud.platform.pipelines import SERVICE
from paddlecloud.platform.published import restored, service_objects

ADDRESS = {"clusterIP": "10.0.0.9", "clusterIPs": ["10.0.0.9"], "ipFamilies": ["IPv4"], "sessionAffinity": "None"}
WANTED = service_objects(SERVICE, 4000)[0]
STORED: Object = {**WANTED, "spec": {**WANTED["spec"], **ADDRESS}}


@pytest.mark.parametrize(
    "change",
    [
        {"selector": {"app": "listener"}},
        {"type": "ExternalName", "externalName": "elsewhere"},
        {"externalIPs": ["10.0.0.1"]},
        {"ports": [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": 81}]},
    ],
    ids=lambda change: "-".join(change),
)
def test_a_changed_service_leads_to_the_api_again(change: Object) -> None:
    changed = copy.deepcopy(STORED)
    changed["spec"] |= change
    assert restored(changed, WANTED) == STORED


def test_an_unchanged_service_is_not_written() -> None:
    assert restored(STORED, WANTED) == STORED
