"""Which file goes to which level, and what has to go for it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from paddlecloud.cache.placement import Held, WantedFile, place

INF = float("inf")


def test_what_is_read_first_lies_fastest_and_the_rest_overflows() -> None:
    wanted = [WantedFile(name, 10) for name in "abcd"]
    placement = place(wanted, {}, [20, 10])
    assert placement.fetch == [("a", 0), ("b", 0), ("c", 1)]
    assert placement.left_out == ["d"]


def test_what_is_cached_stays_where_it_is() -> None:
    placement = place([WantedFile("a", 10), WantedFile("b", 10)], {"b": Held(10, 0, 1.0)}, [20, 20])
    assert placement.fetch == [("a", 0)]
    assert placement.evict == []


def test_the_longest_unused_goes_first_and_only_when_room_is_needed() -> None:
    held = {"old": Held(10, 0, 1.0), "new": Held(10, 0, 2.0)}
    assert place([WantedFile("a", 10)], held, [30]).evict == []
    assert place([WantedFile("a", 10)], held, [20]).evict == ["old"]


def test_a_smaller_quota_moves_what_no_longer_fits() -> None:
    held = {"a": Held(10, 0, 1.0), "b": Held(10, 0, 1.0)}
    placement = place([WantedFile("a", 10), WantedFile("b", 10)], held, [10, INF])
    assert placement.evict == ["b"]
    assert placement.fetch == [("b", 1)]


files = some.lists(some.tuples(some.text("abcdef", min_size=1, max_size=3), some.integers(0, 30)), max_size=20)


@given(files, files, some.lists(some.integers(0, 100), min_size=1, max_size=3))
def test_no_level_ever_holds_more_than_it_may_and_nothing_is_forgotten(
    wanted: list[tuple[str, int]], cached: list[tuple[str, int]], capacities: list[int]
) -> None:
    plan = [WantedFile(path, size) for path, size in dict(wanted).items()]
    sizes = dict(wanted)
    held = {p: Held(sizes.get(p, s), i % len(capacities), i) for i, (p, s) in enumerate(dict(cached).items())}
    placement = place(plan, held, capacities)
    used = [0] * len(capacities)
    for path, item in held.items():
        if path not in placement.evict:
            used[item.level] += item.size
    for path, level in placement.fetch:
        used[level] += sizes[path]
    assert all(use <= may for use, may in zip(used, capacities, strict=True))
    there = ({path for path, _ in placement.fetch} | set(held)) - set(placement.left_out)
    assert {want.path for want in plan} <= there | set(placement.left_out)
