"""A request that two servers judge differently, with as little around it as keeps the difference.

Every round tries all ways to leave one thing out, each in a fresh world, and goes on with the first that still differs.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from .comparison import Difference, differences
from .judge import Judge
from .model import AccessScenario, Case, Grant, Rule
from .stage import AT_ONCE, verdicts

ROUNDS = 12
_ATTEMPTS = itertools.count(1)


async def shrunk(found: Difference, real: Judge, embedded: Judge, prefix: str) -> Difference | None:
    """None where the request alone shows no difference: then what was asked before it matters."""
    smallest = await _first_that_differs([replace(found.world, cases=(found.case,))], real, embedded, prefix)
    for _ in range(ROUNDS):
        if smallest is None:
            return None
        smaller = await _first_that_differs(list(_smaller(smallest.world)), real, embedded, prefix)
        if smaller is None:
            break
        smallest = smaller
    return smallest


async def _first_that_differs(
    candidates: Sequence[AccessScenario], real: Judge, embedded: Judge, prefix: str
) -> Difference | None:
    for start in range(0, len(candidates), AT_ONCE):
        tried = candidates[start : start + AT_ONCE]
        own = f"{prefix}s{next(_ATTEMPTS)}x"
        theirs, ours = await asyncio.gather(*(verdicts(judge, tried, own) for judge in (real, embedded)))
        for found in differences(tried, theirs, ours):
            return found
    return None


def _smaller(world: AccessScenario) -> Iterator[AccessScenario]:
    """One thing less, the largest things first."""
    (case,) = world.cases
    for number in range(len(world.grants)):
        yield replace(world, grants=(*world.grants[:number], *world.grants[number + 1 :]))
    for number, grant in enumerate(world.grants):
        for less in _smaller_grants(grant):
            yield replace(world, grants=(*world.grants[:number], less, *world.grants[number + 1 :]))
    for fewer in _smaller_cases(case):
        yield replace(world, cases=(fewer,))


def _smaller_grants(grant: Grant) -> Iterator[Grant]:
    if grant.aggregated:
        yield replace(grant, aggregated=False)
    if len(grant.subjects) > 1:
        yield from (replace(grant, subjects=(subject,)) for subject in grant.subjects)
    if len(grant.rules) > 1:
        yield from (replace(grant, rules=(rule,)) for rule in grant.rules)
        return
    for rule in grant.rules:
        yield from (replace(grant, rules=(less,)) for less in _smaller_rules(rule))


def _smaller_rules(rule: Rule) -> Iterator[Rule]:
    for field in ("verbs", "groups", "resources", "names", "urls"):
        values: tuple[str, ...] = getattr(rule, field)
        if len(values) > 1:
            yield from (replace(rule, **{field: (value,)}) for value in values)
    if rule.names:
        yield replace(rule, names=())


def _smaller_cases(case: Case) -> Iterator[Case]:
    for number in range(len(case.query)):
        if case.query[number][0] != "dryRun":
            yield replace(case, query=(*case.query[:number], *case.query[number + 1 :]))
    for number in range(len(case.headers)):
        yield replace(case, headers=(*case.headers[:number], *case.headers[number + 1 :]))
    if case.pages:
        yield replace(case, pages=False)
