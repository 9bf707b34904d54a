"""Which objects a command line names: `pods`, `pods a b`, `pod/a svc/b`, `pods,svc`, `all`."""

from __future__ import annotations

from typing import NamedTuple

from paddlecloud.cli.failures import UsageError
from paddlecloud.cli.objects.api import Api
from paddlecloud.kube.discovery import Entry, UnknownKind
from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.resource import PADDLEJOBS, Resource


class Target(NamedTuple):
    """A kind and the names asked for; no names mean all of them."""

    entry: Entry
    names: tuple[str, ...]

    @property
    def resource(self) -> Resource:
        return self.entry.resource


def parse(words: list[str], *, usage: str) -> list[tuple[str, tuple[str, ...]]]:
    """(kind as written, names), without asking any server. Consecutive KIND/NAME of one kind are kept together."""
    if not words:
        raise UsageError("no kind given", why=usage, next="pdc api-resources")
    if not any("/" in word for word in words):
        kinds = [kind for kind in words[0].split(",") if kind]
        if not kinds:
            raise UsageError(f'"{words[0]}" names no kind', why=usage, next="pdc api-resources")
        return [(kind, tuple(words[1:])) for kind in kinds]
    found: list[tuple[str, tuple[str, ...]]] = []
    for word in words:
        kind, slash, name = word.partition("/")
        if not (kind and slash and name) or "/" in name:
            mixed = "" if "/" in word else "KIND/NAME and KIND NAME cannot be mixed: "
            raise UsageError(f'"{word}" is not KIND/NAME', why=mixed + usage)
        if found and found[-1][0] == kind:
            found[-1] = (kind, (*found[-1][1], name))
        else:
            found.append((kind, (name,)))
    return found


def resolve(api: Api, words: list[str], *, usage: str) -> list[Target]:
    """The same with kinds looked up on the server; a category (`all`) becomes its members."""
    targets: list[Target] = []
    for kind, names in parse(words, usage=usage):
        try:
            targets.append(Target(api.entry(kind), names))
        except UnknownKind:
            members = api.category(kind)
            if not members:
                raise
            targets += [Target(entry, names) for entry in members]
    return targets


def with_jobs(api: Api, words: list[str], namespace: str) -> list[str]:
    """The words, as `pdj/NAME` where the first is no kind but the name of a PaddleJob; a misspelt kind stays one."""
    if not words or any("/" in word for word in words):
        return words
    try:
        api.entry(words[0].split(",")[0])
        return words
    except UnknownKind:
        if api.category(words[0]):
            return words
    try:
        api.do(api.client.get(PADDLEJOBS, words[0], namespace))
    except ApiError:
        return words  # neither: what it is not is then said of the kind
    return [f"pdj/{word}" for word in words]


def one(api: Api, words: list[str], *, usage: str) -> tuple[Entry, str]:
    """Exactly one object: `KIND NAME` or `KIND/NAME`."""
    targets = resolve(api, words, usage=usage)
    if len(targets) != 1 or len(targets[0].names) != 1:
        raise UsageError("name exactly one object", why=usage)
    return targets[0].entry, targets[0].names[0]


def name_in(api: Api, word: str, resource: Resource) -> str:
    """The name of an object of one kind, written with the kind before it or without: `words`, `sampleset/words`."""
    kind, slash, name = word.rpartition("/")
    if not slash:
        return word
    if api.entry(kind).resource.full_name != resource.full_name:
        raise UsageError(f'"{word}" is no {resource.kind}', next=f"pdc get {resource.plural}")
    return name


def display(resource: Resource, name: str) -> str:
    """`pod/x`, `deployment.apps/x`: how `-o name` and messages call an object."""
    group = f".{resource.group}" if resource.group else ""
    return f"{resource.kind.lower()}{group}/{name}"
