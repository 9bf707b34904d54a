"""Orders reach the executor as they were given, whatever the source of a script looks like and however long it is."""

from __future__ import annotations

import json

import pytest

from paddlecloud.local.kubelet.pod.env import expand
from paddlecloud.local.kubelet.pod.exec_limits import Room
from paddlecloud.local.workflow.executor.orders import (
    MOST_ORDERS,
    MOST_VARIABLE,
    ExecutorError,
    as_variables,
    in_spec,
    taken_out,
)

_QUOTES = len(json.dumps(""))


@pytest.mark.parametrize(
    "source",
    [
        "echo $(V) $$ $$$ ${V}",
        "$",
        "$$(V)",
        "price: 5$",
        "no dollar",
        "x" * 400_000,
        "$" * 400_000,
        "中" * 100_000,
        *("x" * (count * MOST_VARIABLE - _QUOTES + more) for count in (1, 2) for more in (-1, 0, 1)),
        "x" * (MOST_VARIABLE - _QUOTES) + "$(V)",
        "x" * (MOST_VARIABLE - _QUOTES - 1) + "$(V)",
    ],
    ids=lambda source: f"{source[:10]}-{len(source)}",
)
def test_the_source_of_a_script_arrives_as_it_was_given(source: str) -> None:
    given = as_variables(source)
    room = Room()
    environment = {"V": "from the environment", "ARGO_TEMPLATE_9": "of the author"}
    for each in given:
        value = expand(each["value"], environment)
        environment[each["name"]] = room.take("a variable", value, name=each["name"])
    assert json.loads(taken_out(environment)) == source
    assert environment == {"V": "from the environment", "ARGO_TEMPLATE_9": "of the author"}
    before = [{"name": "ARGO_TEMPLATE", "value": "{}"}, {"name": "ARGO_TEMPLATE_1", "value": "1"}, {"name": "OTHER"}]
    assert json.loads(in_spec([*before, *given])) == source


def test_orders_that_no_container_can_have_are_refused_with_what_to_do() -> None:
    with pytest.raises(ExecutorError, match="give it what is long as an artifact or in a volume"):
        as_variables({"source": "$" * (MOST_ORDERS // 2)})
