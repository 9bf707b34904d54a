"""What Kubernetes accepts as a DNS subdomain, a qualified name and the value of a label, in its own words. Pure."""

from __future__ import annotations

import re

_QUALIFIED_PART = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_WILDCARD_RULE = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', "
    f"regex used for validation is '\\*\\.{_SUBDOMAIN.pattern}')"
)
_NAME_PART_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_TWO_SLASHES_RULE = (
    f"a qualified name {_NAME_PART_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
_LABEL_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
    "validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def subdomain_problems(value: str) -> list[str]:
    """What keeps `value` from being a DNS-1123 subdomain; empty when nothing does."""
    problems = ["must be no more than 253 characters"] if len(value) > 253 else []
    if not _SUBDOMAIN.fullmatch(value):
        problems.append(SUBDOMAIN_RULE)
    return problems


def wildcard_subdomain_problems(value: str) -> list[str]:
    """What keeps `value` from being a DNS-1123 subdomain after `*.`."""
    problems = ["must be no more than 253 characters"] if len(value) > 253 else []
    if not value.startswith("*.") or not _SUBDOMAIN.fullmatch(value, 2):
        problems.append(_WILDCARD_RULE)
    return problems


def qualified_name_problems(value: str) -> list[str]:
    """What keeps `value` from being a qualified name, `[prefix/]name`: the form of label keys."""
    problems: list[str] = []
    prefix, slash, name = value.rpartition("/")
    if slash:
        if "/" in prefix:
            return [_TWO_SLASHES_RULE]
        if not prefix:
            problems.append("prefix part must be non-empty")
        else:
            problems += [f"prefix part {problem}" for problem in subdomain_problems(prefix)]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name) > 63:
        problems.append("name part must be no more than 63 characters")
    if not _QUALIFIED_PART.fullmatch(name):
        problems.append(f"name part {_NAME_PART_RULE}")
    return problems


def label_value_problems(value: str) -> list[str]:
    problems = ["must be no more than 63 characters"] if len(value) > 63 else []
    if not _LABEL_VALUE.fullmatch(value):
        problems.append(_LABEL_VALUE_RULE)
    return problems


def is_label_value(value: str) -> bool:
    return len(value) <= 63 and _LABEL_VALUE.fullmatch(value) is not None
