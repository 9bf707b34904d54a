"""Whatever users do and whatever becomes of revisions, in any order: traffic is always whole, and it ends well."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.api.names import SOURCE
from unit.controllers.paddleservice.world import ServiceCluster, endpoint

TAGS = st.sampled_from(["one", "two", "three"])
MOVES = st.one_of(
    st.tuples(st.just("default"), TAGS),
    st.tuples(st.just("canary"), st.one_of(st.none(), TAGS)),
    st.tuples(st.just("steps"), st.booleans()),
    st.tuples(st.just("ready"), st.integers(0, 5)),
    st.tuples(st.just("fails"), st.integers(0, 5)),
    st.tuples(st.just("time"), st.integers(1, 90)),
    st.tuples(st.just("controller"), st.none()),
    st.tuples(st.just("knative"), st.none()),
)


def play(world: ServiceCluster, move: tuple[str, object]) -> None:
    kind, value = move
    names = list(world.revisions)
    if kind == "default":
        world.change(default=endpoint(str(value)))
    elif kind == "canary":
        world.change(canary=endpoint(str(value)) if value else None)
    elif kind == "steps":
        world.change(rollout={"steps": [20, 60], "pauseSeconds": 30} if value else None)
    elif kind in ("ready", "fails") and names:
        assert isinstance(value, int)
        name = names[value % len(names)]
        if world.revisions[name].get("status") is None:
            world.ready(name, "True" if kind == "ready" else "False", message="no luck")
    elif kind == "time":
        assert isinstance(value, int)
        world.now += value
    elif kind == "controller":
        world.step()
    elif kind == "knative" and world.kservice is not None:
        world.knative()


@settings(max_examples=80, deadline=None)
@given(st.lists(MOVES, max_size=40))
def test_in_any_order_traffic_is_whole_and_the_wanted_revision_gets_it_in_the_end(
    moves: list[tuple[str, object]],
) -> None:
    world = ServiceCluster()
    for move in moves:
        play(world, move)
        if world.kservice is not None:
            assert sum(world.shares.values()) == 100
    tag, canary = world.service["spec"]["default"]["tag"], world.service["spec"].get("canary")
    for found in world.revisions.values():
        found.pop("status", None)  # the trouble is over: everything starts
    world.settle()
    for _ in range(4):
        world.advance(31)
    shares = {_source(world, name): share for name, share in world.shares.items()}
    assert sum(shares.values()) == 100
    assert set(shares) == {("default", tag), *([("canary", canary["tag"])] if canary else [])}
    assert world.condition("Ready")["status"] == "True"


def _source(world: ServiceCluster, name: str) -> tuple[str, str]:
    meta = world.revisions[name]["metadata"]
    return meta["labels"]["serving.paddlepaddle.org/endpoint"], json.loads(meta["annotations"][SOURCE])["tag"]
