"""Names with which an object could never work: refused by the API server when the object is created.

Names of pods, Services, finalizers and labels are made from them and have their own limits. `validate` of each kind
judges the same for objects that are stored already. Those have a status, which a new object cannot have: the rules let
them be, because their status and their finalizers must stay writable.
"""

from __future__ import annotations

from paddlecloud.api.fields import Rule

MAX_LABEL = 63
"""Characters of a DNS label: host names of pods, names of Services, parts of finalizers."""


def at_creation(expression: str, message: str) -> Rule:
    return Rule(f"has(self.status) || {expression}", f"metadata.name: {message}")


def no_longer_than(longest: int, why: str) -> Rule:
    return at_creation(f"size(self.metadata.name) <= {longest}", f"may not be more than {longest} characters: {why}")


DNS_LABEL = at_creation(
    "(self.metadata.name >= 'a' && !self.metadata.name.contains('.'))",
    "must be lower-case letters, digits and dashes, beginning with a letter",
)
"""Kubernetes has made sure of the rest of a DNS-1123 subdomain, in which digits come before letters."""
