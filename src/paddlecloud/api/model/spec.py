"""Fields of Model and ModelVersion, and the rules by which API servers keep versions and histories as they are."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from paddlecloud.api.fields import Conditions, Int32, Int64, Root, Rule, Time, Wire, doc
from paddlecloud.api.model.reference import ALIAS_PATTERN, LATEST, LONGEST, NAME_PATTERN, VERSION_PATTERN
from paddlecloud.api.model.signature import Signature

MOST_MOVES = 256
"""In each of the two histories of a model; with the next one the oldest goes."""
MOST_ALIASES = 64
LONGEST_TEXT = 1024
AGE_PATTERN = "^[1-9][0-9]{0,4}[mhdw]$"


def _last(history: str) -> str:
    return f"self.{history}[size(self.{history}) - 1]"


def _has_entries(history: str) -> str:
    return f"(has(self.{history}) && size(self.{history}) > 0)"


def _last_move(history: str) -> str:
    """Its alias points where its last entry says."""
    last = _last(history)
    return (
        f"(!{_has_entries(history)} || (has({last}.to) ? has(self.aliases) && {last}.alias in self.aliases && "
        f"self.aliases[{last}.alias] == {last}.to : !has(self.aliases) || !({last}.alias in self.aliases)))"
    )


def _recorded_in(history: str) -> str:
    """It has grown, and there are as many aliases as its new entry makes or removes."""
    last = _last(history)
    was_there = f"(has(oldSelf.aliases) && {last}.alias in oldSelf.aliases ? 1 : 0)"
    return (
        f"({_has_entries(history)} && (!has(oldSelf.{history}) || self.{history} != oldSelf.{history}) && "
        "(has(self.aliases) ? size(self.aliases) : 0) == (has(oldSelf.aliases) ? size(oldSelf.aliases) : 0) "
        f"+ (has({last}.to) ? 1 : 0) - {was_there})"
    )


def _history_stays(history: str) -> Rule:
    new, old, last = f"self.{history}", f"oldSelf.{history}", _last(history)
    full = f"(size({old}) == {MOST_MOVES} && [{old}[0]] + {new} == {old} + [{last}])"
    return Rule(
        f"!has({old}) || size({old}) == 0 || ({_has_entries(history)} && "
        f"({new} == {old} || {new} == {old} + [{last}] || {full}))",
        f"spec.{history} is a history: one entry is appended at a time; of more than {MOST_MOVES} the oldest goes",
    )


LAST_MOVE = Rule(
    f"{_last_move('moves')} && {_last_move('latestMoves')} && (!has(self.aliases) || size(self.aliases) == 0 || "
    f"{_has_entries('moves')} || {_has_entries('latestMoves')})",
    "the last entry of spec.moves and of spec.latestMoves must say where its alias points now, and aliases need an "
    "entry: use `pdc model tag`",
)
OWN_HISTORY = Rule(
    f"(!{_has_entries('moves')} || {_last('moves')}.alias != '{LATEST}') && "
    f"(!{_has_entries('latestMoves')} || {_last('latestMoves')}.alias == '{LATEST}')",
    f"moves of the alias {LATEST} are in spec.latestMoves, those of the others in spec.moves",
)
NO_MOVE_UNRECORDED = Rule(
    "(!has(self.aliases) && !has(oldSelf.aliases)) || "
    "(has(self.aliases) && has(oldSelf.aliases) && self.aliases == oldSelf.aliases) || "
    f"{_recorded_in('moves')} || {_recorded_in('latestMoves')}",
    "an alias is moved or removed together with an entry in spec.moves, or in spec.latestMoves, that says who does it "
    "and why, one alias at a time: use `pdc model tag`",
)
"""Rules have no loops (`local.apiserver.schema.cel`): of the other aliases they see how many there are."""


class Move(Wire):
    """An alias was moved or removed."""

    alias: Annotated[str, doc("Which alias.", required=True, pattern=ALIAS_PATTERN, maxLength=LONGEST)]
    by: Annotated[
        str,
        doc("Who moved it, as the client says; the API server's audit log proves it.", required=True, maxLength=256),
    ]
    at: Annotated[Time, doc("When.", required=True)]
    to: Annotated[
        str | None,
        doc("The version it points to from then on; nothing if the alias was removed.", minLength=1, maxLength=LONGEST),
    ] = None
    previous: Annotated[
        str | None, doc("The version it pointed to before; nothing for a new alias.", maxLength=LONGEST)
    ] = None
    reason: Annotated[str | None, doc("Why, in a sentence.", maxLength=LONGEST_TEXT)] = None
    rollback: Annotated[
        bool | None, doc("Whether the alias went back along this history: the next rollback goes further back.")
    ] = None


class Retention(Wire):
    """Which versions are kept: those that `count` keeps and those that `age` keeps. The others are removed, except the
    newest, those that an alias names or would go back to by a rollback, and those that a PaddleService uses."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule("has(self.count) || has(self.age)", "say how many versions are kept (count), for how long (age), or both"),
    )

    count: Annotated[Int32 | None, doc("The newest so many are kept.", minimum=1, maximum=100_000)] = None
    age: Annotated[
        str | None,
        doc("Those registered within this time are kept: `30d`, or a number of m, h or w.", pattern=AGE_PATTERN),
    ] = None


class ModelSpec(Wire):
    """Which versions the aliases of a model point to, and which versions are kept."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        LAST_MOVE,
        OWN_HISTORY,
        NO_MOVE_UNRECORDED,
        _history_stays("moves"),
        _history_stays("latestMoves"),
    )

    description: Annotated[str | None, doc("What the model is for.", maxLength=LONGEST_TEXT)] = None
    retention: Annotated[
        Retention | None, doc("Which versions are kept; without it all are, until somebody deletes them.")
    ] = None
    aliases: Annotated[
        dict[str, Annotated[str, msgspec.Meta(extra_json_schema={"maxLength": LONGEST})]] | None,
        doc("Names that move, such as `production`, and the version each points to.", maxProperties=MOST_ALIASES),
    ] = None
    moves: Annotated[
        list[Move] | None,
        doc("The history of all aliases but `latest`, oldest first; it is only appended to.", maxItems=MOST_MOVES),
    ] = None
    latest_moves: Annotated[
        list[Move] | None,
        doc(
            "The history of the alias `latest`, which every push moves. It is a list of its own, so that pushes do not "
            "displace what people decided.",
            maxItems=MOST_MOVES,
        ),
    ] = None


class NextRemoval(Wire):
    """What retention removes next."""

    version: Annotated[str, doc("Which version.", required=True)]
    at: Annotated[Time, doc("When.", required=True)]
    reason: Annotated[str | None, doc("Why it is no longer kept.")] = None


class ModelStatus(Wire):
    """What the controller observed."""

    observed_generation: Annotated[Int64 | None, doc("The generation of the spec that this is about.")] = None
    versions: Annotated[Int32 | None, doc("How many versions the model has.")] = None
    next_removal: Annotated[NextRemoval | None, doc("What retention removes next, if nothing changes until then.")] = (
        None
    )
    message: Annotated[str | None, doc("What is wrong, or what a deletion waits for.")] = None
    conditions: Annotated[
        Conditions | None,
        doc("`InUse`: it is deleted, and something uses it. `AliasBroken`: an alias names no version that exists."),
    ] = None


class Model(Root):
    """Versions under one name."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            f"size(self.metadata.name) <= {LONGEST} && !self.metadata.name.contains('.')",
            f"metadata.name: must be lower-case letters, digits and dashes, {LONGEST} characters at most",
        ),
    )

    spec: Annotated[ModelSpec | None, doc("Aliases and their history.", required=True)] = None
    status: Annotated[ModelStatus | None, doc("Written by the controller.")] = None


class ModelVersionSpec(Wire):
    """What a version is and where it came from. It never changes."""

    RULES: ClassVar[tuple[Rule, ...]] = (Rule("self == oldSelf", "a version never changes: push another one"),)

    model: Annotated[str | None, doc("Name of its Model.", required=True, pattern=NAME_PATTERN, maxLength=LONGEST)] = (
        None
    )
    version: Annotated[str | None, doc("Its own name.", required=True, pattern=VERSION_PATTERN, maxLength=LONGEST)] = (
        None
    )
    digest: Annotated[
        str | None,
        doc(
            "SHA-256 of its files: of a line `SHA256 SIZE PATH` for each, in the order of paths.",
            required=True,
            pattern="^sha256:[0-9a-f]{64}$",
        ),
    ] = None
    size: Annotated[Int64 | None, doc("Bytes of all files.", required=True, minimum=0)] = None
    files: Annotated[Int32 | None, doc("How many files it has.", required=True, minimum=1)] = None
    store: Annotated[
        str | None, doc("Address of the store; nothing for that of the embedded platform.", maxLength=LONGEST_TEXT)
    ] = None
    framework: Annotated[str | None, doc("`paddle`, `onnx` or nothing.", maxLength=LONGEST)] = None
    signature: Annotated[
        Signature | None, doc("Its inputs and outputs, as its files say, or its author where they do not.")
    ] = None
    description: Annotated[str | None, doc("What is special about it.", maxLength=LONGEST_TEXT)] = None
    metrics: Annotated[dict[str, float] | None, doc("What was measured, such as `accuracy`.", maxProperties=64)] = None
    origin: Annotated[
        dict[str, str] | None,
        doc("Where it came from, as the author says: `job`, `image`, `data`, `commit` and others.", maxProperties=64),
    ] = None
    created_by: Annotated[str | None, doc("Who pushed it, as the client says.", maxLength=256)] = None
    created_at: Annotated[Time | None, doc("When it was pushed.")] = None


class ModelVersionStatus(Wire):
    """What the controller observed; nothing while there is nothing to say."""

    phase: Annotated[str | None, doc("`Lost`, `Terminating` (deleted, and still in use), or nothing.")] = None
    message: Annotated[str | None, doc("What is wrong, or what a deletion waits for, and what to do.")] = None
    conditions: Annotated[
        Conditions | None,
        doc("`InUse`: it is deleted, and something uses it. `Lost`: the store has no manifest of it."),
    ] = None


class ModelVersion(Root):
    """A model as it was at one time."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "self.metadata.name == self.spec.model + '.' + self.spec.version",
            "metadata.name: must be MODEL.VERSION",
        ),
        Rule("self.spec.version != 'latest'", "spec.version: latest is an alias; a version has a name of its own"),
    )

    spec: Annotated[ModelVersionSpec | None, doc("What it is.", required=True)] = None
    status: Annotated[ModelVersionStatus | None, doc("Written by the controller.")] = None
