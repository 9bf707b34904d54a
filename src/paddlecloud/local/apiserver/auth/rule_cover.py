"""Comparing powers: which parts of some rules no held rule grants, within a bound on the work.

A rule of two kilobytes may stand for millions of single permissions, so the permissions are not listed: for each group
and resource the verbs and names that remain are found by subtracting sets. Work is counted over all the rules together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from paddlecloud.local.apiserver.auth.rbac import Rule

MOST_WORK = 250_000
"""Steps, about a microsecond each or less. To grant `admin` while holding it by other rules takes some thousands."""
_ATOM = 200  # steps that one missing permission counts for: it is kept until the answer is written


class _TooMuch(Exception):
    """The comparison would take more than `MOST_WORK` steps."""


def uncovered(held: Iterable[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """The parts of `wanted` that no rule of `held` grants; empty when giving them away adds no power.

    A rule wider than any single one held may still be covered piece by piece, so it is taken apart. Where that takes
    too much work, the rule counts as missing, and the rest is not looked at: its owner may grant it in smaller roles.
    """
    missing: list[Rule] = []
    comparison = _Comparison(held)
    for rule in dict.fromkeys(wanted):
        try:
            missing += comparison.missing(rule)
        except _TooMuch:
            return [*missing, rule]
    return missing


class _Comparison:
    def __init__(self, held: Iterable[Rule]) -> None:
        self._left = MOST_WORK
        self._held = dict.fromkeys(_merged(held))
        self._of_resource: dict[str, list[Rule]] = {}
        self._of_url: dict[str, list[Rule]] = {}
        self._of_prefix: dict[str, list[Rule]] = {}
        for rule in self._held:
            for resource in rule.resources:
                self._of_resource.setdefault(resource, []).append(rule)
            for url in rule.urls:
                self._of_url.setdefault(url, []).append(rule)
                if url.endswith("*"):
                    self._of_prefix.setdefault(url[:-1], []).append(rule)

    def missing(self, rule: Rule) -> list[Rule]:
        self._work(1)
        if rule in self._held or self._covered_at_once(rule):
            return []
        found = list(self._missing_urls(rule))
        resources = sorted(rule.resources)
        for group in sorted(rule.groups):
            for resource in resources:
                found += self._missing_in(rule, group, resource)
        return found

    def _work(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise _TooMuch

    def _covered_at_once(self, rule: Rule) -> bool:
        """Whether one held rule grants all resources of the rule."""
        if rule.urls or not rule.resources:
            return False
        steps = 1 + (len(rule.verbs) + len(rule.groups) + len(rule.names)) // 16
        for owner in self._owners(min(rule.resources)):
            self._work(steps)
            if not (_grants_verbs(owner, rule.verbs) and ("*" in owner.groups or rule.groups <= owner.groups)):
                continue
            if owner.names and not (rule.names and rule.names <= owner.names):
                continue
            if "*" in owner.resources:
                return True
            self._work(len(rule.resources))
            if all(any(key in owner.resources for key in _keys(resource)) for resource in rule.resources):
                return True
        return False

    def _owners(self, resource: str) -> Iterator[Rule]:
        """Held rules that grant something of the resource."""
        for key in _keys(resource):
            yield from self._of_resource.get(key, ())

    def _missing_in(self, rule: Rule, group: str, resource: str) -> Iterator[Rule]:
        verbs = rule.verbs
        named: list[Rule] = []
        self._work(1)
        for owner in self._owners(resource):
            self._work(len(verbs) + 1)
            if "*" not in owner.groups and group not in owner.groups:
                continue
            if owner.names:
                named.append(owner)
            elif "*" in owner.verbs:
                return
            else:
                verbs = verbs - owner.verbs
        places = frozenset((group,)), frozenset((resource,))
        for verb in sorted(verbs):
            names = rule.names
            for owner in named if names else ():
                self._work(len(names) + 1)
                if "*" in owner.verbs or verb in owner.verbs:
                    names = names - owner.names
            if rule.names:
                self._work(_ATOM * len(names))
                yield from (Rule(frozenset((verb,)), *places, frozenset((name,))) for name in sorted(names))
            else:
                self._work(_ATOM)
                yield Rule(frozenset((verb,)), *places)

    def _missing_urls(self, rule: Rule) -> Iterator[Rule]:
        for url in sorted(rule.urls):
            verbs = rule.verbs
            for owner in self._owners_of_url(url):
                self._work(len(verbs) + 1)
                verbs = frozenset() if "*" in owner.verbs else verbs - owner.verbs
            self._work(_ATOM * len(verbs))
            yield from (Rule(frozenset((verb,)), urls=frozenset((url,))) for verb in sorted(verbs))

    def _owners_of_url(self, url: str) -> Iterator[Rule]:
        yield from self._of_url.get(url, ())
        self._work(1 + len(self._of_prefix))
        for prefix, owners in self._of_prefix.items():
            if url.startswith(prefix):
                yield from owners


def _merged(rules: Iterable[Rule]) -> Iterator[Rule]:
    """Rules that differ in their resource names alone as one: people hold such rules by the thousand."""
    names: dict[Rule, set[str]] = {}
    for rule in rules:
        if rule.names:
            rest = Rule(rule.verbs, rule.groups, rule.resources, urls=rule.urls)
            names.setdefault(rest, set()).update(rule.names)
        else:
            yield rule
    for rest, found in names.items():
        yield Rule(rest.verbs, rest.groups, rest.resources, frozenset(found), rest.urls)


def _keys(resource: str) -> tuple[str, ...]:
    """What a rule may have among its resources to grant this one."""
    _, slash, subresource = resource.partition("/")
    return tuple(dict.fromkeys(("*", resource, f"*/{subresource}") if slash else ("*", resource)))


def _grants_verbs(owner: Rule, verbs: frozenset[str]) -> bool:
    return "*" in owner.verbs or verbs <= owner.verbs
