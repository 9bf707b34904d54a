"""Arguments of the SDK's calls, held against their annotations before anything is sent.

A wrong type would otherwise fail somewhere below, in words about code that is not the caller's. `checked` wraps the
public methods of a class; a call with wrong arguments raises `ArgumentError` with one sentence about one argument.
What can only be known by using it (the items of a generator, the result of a callable) is left to its use.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from paddlecloud.kube.nearest import question

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])

_CALLED = {
    str: "text",
    bytes: "bytes",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    type(None): "None",
}


_FORMS = {
    "cpu": '"500m" or 0.5',
    "memory": '"4Gi"',
    "env": '{"LR": "0.1"}',
    "volumes": '["./data:/data:ro"]',
    "elastic": "(1, 4)",
    "ranks": "[0, 1]",
    "command": '["ls", "-l"]',
    "labels": '{"team": "a"}',
    "patch": '{"spec": {"suspend": True}}',
}
"""How arguments are written whose type alone does not say it, by their name."""


class ArgumentError(ValueError):
    """A call of the SDK has an argument that it does not take; the text names it and says what it takes."""


def checked(cls: C) -> C:
    """Class decorator: every public method refuses arguments that its annotations do not allow."""
    for name, function in list(vars(cls).items()):
        if inspect.isfunction(function) and not name.startswith("_"):
            setattr(cls, name, checked_call(function))
    return cls


def checked_call(function: F) -> F:
    """The same for one function. `self` has no annotation and is not looked at."""
    signature = inspect.signature(function)

    @functools.cache
    def hints() -> dict[str, Any]:
        return typing.get_type_hints(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        _check_keywords(function.__name__, signature, kwargs)
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise ArgumentError(f"{function.__name__}: {error}") from None
        for name, value in given.items():
            if name in hints() and signature.parameters[name].kind is not inspect.Parameter.VAR_KEYWORD:
                expected = hints()[name]
                if signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
                    expected = Sequence[expected]  # type: ignore[valid-type]
                if not allows(expected, value):
                    form = f", such as {_FORMS[name]}" if name in _FORMS else ""
                    what = f"{describe(expected)}{form}"
                    raise ArgumentError(f"{function.__name__}: {name} is {what}, not {_shown(value)}")
        return function(*args, **kwargs)

    return typing.cast(F, call)


def _check_keywords(call: str, signature: inspect.Signature, given: Mapping[str, Any]) -> None:
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in signature.parameters.values()):
        return
    known = [name for name in signature.parameters if name != "self"]
    for name in given:
        if name not in known:
            meant = question(name, known)
            raise ArgumentError(f'{call} takes no "{name}"' + (f"; {meant}" if meant else ""))


def allows(expected: Any, value: Any) -> bool:
    """Whether a value is of an annotated type, as far as it can be seen without using it up."""
    if expected is Any or isinstance(expected, TypeVar):
        return True
    origin, inner = typing.get_origin(expected), typing.get_args(expected)
    if origin in (typing.Union, types.UnionType):
        return any(allows(one, value) for one in inner)
    if expected is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if expected is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if origin is tuple:
        pair = isinstance(value, (tuple, list)) and len(value) == len(inner)
        return pair and all(allows(one, item) for one, item in zip(inner, value, strict=True))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(
            allows(inner[0], key) and allows(inner[1], item) for key, item in value.items()
        )
    if origin is Callable:
        return callable(value)
    if isinstance(origin, type) and issubclass(origin, Iterable):
        # To Python a text is a sequence of texts, and a mapping one of its keys; as an argument neither is meant so.
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, origin):
            return False
        return not isinstance(value, (list, tuple, set, frozenset)) or all(allows(inner[0], item) for item in value)
    plain = origin or expected
    return not isinstance(plain, type) or isinstance(value, plain)


def describe(expected: Any) -> str:
    """An annotation in words: `a whole number or None`."""
    origin, inner = typing.get_origin(expected), typing.get_args(expected)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(describe(one) for one in inner)
    if expected in _CALLED:
        return _CALLED[expected]
    if origin is tuple:
        return f"({', '.join(describe(one) for one in inner)})"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"a mapping of {describe(inner[0])} to {describe(inner[1])}"
    if origin is Callable:
        return "a function"
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return f"a list of {describe(inner[0])}"
    return "a path" if getattr(origin, "__name__", "") == "PathLike" else getattr(expected, "__name__", str(expected))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
