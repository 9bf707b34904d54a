"""Expressions and texts with tags, from a seed, over variables as a workflow has them."""

from __future__ import annotations

import json
import random
from typing import Any

VARIABLES: dict[str, Any] = {
    "item": {"a": "x", "n": 3.0, "list": [1.0, 2.5, "z"], "deep": {"k": True}},
    "name": "bob",
    "count": 7.0,
    "flag": True,
    "empty": "",
    "list": ["b", "a", "c"],
    "nums": [3.0, 1.0, 2.0],
    "nothing": None,
}
TEXT_VARIABLES = {
    "inputs.parameters.message": 'say "hello"\n<you>',
    "inputs.parameters.number": "41",
    "inputs.parameters.which": "message",
    "steps.made.outputs.result": '[{"a": 1}, {"a": 2.5}]',
    "workflow.name": "wf",
    "item": "chosen",
}

_LITERALS = [
    "0",
    "1",
    "2",
    "-3",
    "7",
    "2.5",
    "0.1",
    "1e3",
    "'a'",
    '"b"',
    "''",
    "true",
    "false",
    "nil",
    "'12'",
    "'1.5'",
    "'x,y'",
    "`raw`",
    "'日本'",
    "'<b>'",
    "0x1F",
    "1_000",
]
_NAMES = [
    "name",
    "count",
    "flag",
    "empty",
    "list",
    "nums",
    "nothing",
    "item",
    "item.a",
    "item.n",
    "item.list",
    "item['a']",
    "item.deep.k",
    "item.none",
    "item?.none?.x",
    "list[0]",
    "nums[-1]",
    "list[1:]",
    "nums[:2]",
    "name[0:2]",
]
_SIGNS = [
    "+",
    "-",
    "*",
    "/",
    "%",
    "==",
    "!=",
    "<",
    ">",
    "<=",
    ">=",
    "&&",
    "||",
    "and",
    "or",
    "??",
    "in",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
]
_ONE = [
    "len",
    "type",
    "int",
    "float",
    "string",
    "abs",
    "ceil",
    "floor",
    "round",
    "trim",
    "upper",
    "lower",
    "toJSON",
    "asInt",
    "asFloat",
    "toJson",
]
_TWO = [
    "split",
    "indexOf",
    "lastIndexOf",
    "hasPrefix",
    "hasSuffix",
    "trimPrefix",
    "trimSuffix",
    "get",
    "repeat",
    "max",
    "min",
    "concat",
    "trim",
]
_OF_ARRAY = ["first", "last", "reverse", "uniq", "flatten", "sort", "len", "max", "min", "mean", "median", "join"]
_OVER = [
    "all",
    "any",
    "one",
    "none",
    "map",
    "filter",
    "find",
    "findIndex",
    "findLast",
    "findLastIndex",
    "count",
    "sortBy",
]
_PREDICATES = ("# > 1", "# == 2", "# != 'a'", "true", "{# >= 1}", "type(#) == 'float'")
_PIPES = ("len()", "first()", "map(#)", "filter(# == 1)", "join(',')", "sort()", "reverse()", "count(# == 1)")


class Expressions:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def expression(self, depth: int) -> str:
        if depth <= 0:
            return self._pick(_LITERALS if self._random.random() < 0.5 else _NAMES)
        inner = [self.expression(depth - 1) for _ in range(3)]
        array = self._array(inner)
        return self._pick((
            f"{inner[0]} {self._pick(_SIGNS)} {inner[1]}",
            f"{inner[0]} {self._pick(_SIGNS)} {inner[1]}",
            f"{inner[0]} not in {array}",
            f"({inner[0]})",
            f"{self._pick(('not ', '!', '-'))}{inner[0]}",
            f"{inner[0]} ? {inner[1]} : {inner[2]}",
            f"{self._pick(_ONE)}({inner[0]})",
            f"{self._pick(_TWO)}({inner[0]}, {inner[1]})",
            f"{self._pick(_OF_ARRAY)}({array})",
            f"{self._pick(_OVER)}({array}, {self._pick(_PREDICATES)})",
            f"{array} | {self._pick(_PIPES)}",
            f"let v = {inner[0]}; [v, string(v)]",
            f"{{a: {inner[0]}, 'b': {inner[1]}}}{self._pick(('', '.a', '.b', '.c'))}",
            f"reduce({array}, {self._pick(('#acc + #', '#acc + #, 0'))})",
            f"if {inner[0]} {{{inner[1]}}} else {{{inner[2]}}}",
        ))  # fmt: skip

    def _array(self, inner: list[str]) -> str:
        return self._pick((
            "list", "nums", "item.list", "[]", f"[{inner[0]}, {inner[1]}]", "1..4", "[3, 1, 2]", "['b', 'a']",
            "split('a,b,c', ',')", "map(nums, # * 2)", "filter(nums, # > 1)",
        ))  # fmt: skip

    def _pick(self, choices: Any) -> str:
        return str(self._random.choice(choices))

    def some(self, count: int) -> list[str]:
        return [self.expression(self._random.choice((1, 1, 2, 2, 3))) for _ in range(count)]


TEXTS = (
    "plain",
    "{{inputs.parameters.message}}",
    "{{ inputs.parameters.message }} twice {{inputs.parameters.number}}",
    "{{inputs.parameters.missing}}",
    "{{inputs.parameters.{{item}}}}",
    "{{inputs.parameters.{{inputs.parameters.which}}}}",
    "{{=asInt(inputs.parameters.number) + 1}}",
    "{{=inputs.parameters.message}}",
    "{{=inputs.parameters.missing}}",
    "{{=item}}-{{item}}",
    "{{=toJson(fromJSON(steps.made.outputs.result))}}",
    "{{=map(fromJSON(steps['made'].outputs.result), .a)}}",
    "{{=steps.other.outputs.result ?? 'none'}}",
    "{{=retries}}",
    "{{=workflow.name + lastRetry.exitCode}}",
    "{{=sprig.upper(workflow.name)}}",
    "{{=sprig.trunc(3, inputs.parameters.message)}} {{=sprig.add(1, 2)}} {{=sprig.join(',', sprig.list('a', 'b'))}}",
    "{{=sprig.toJson(sprig.dict('a', 1))}}",
    "{{=1.0}} {{=2.5}} {{=true}} {{=[1, 'a']}} {{={a: 1}}}",
    "{{=nil}}",
    "{{=}}",
    "{{}}",
    "{{unclosed",
    "}} {{item}}",
    "{{=item +}}",
    "{{='}}'}}",
    "{{=unknown}}",
)

_DOCUMENT = json.dumps({
    "a": "1", "b": {"c": [10, 20, 30], "d e": None}, "flag": False,
    "people": [{"name": "Baris", "age": 43}, {"name": "Mo", "age": 42}, {"name": "Jai"}],
})  # fmt: skip
_PATHS = (
    "$", "$.a", "$['a']", "$.b.c", "$.b.c[0]", "$.b.c[-1]", "$.b.c[5]", "$.b.c[1:]", "$.b.c[0:2]", "$.b.c[::2]",
    "$.b.c[*]", "$.b.*", "$.b['d e']", "$.missing", "$.people[*].name", "$.people[*].age", "$.people[0].name",
    "$.people[?(@.name=='Baris')].age", "$.people[?(@.age>42 && @.age<44)].age", "$.people[?(@.age)].name",
    "$.people[?(@.age>=42)]", "$.people[?(@.name=='Mo' || @.name=='Jai')].name", "$.people[?(@.name!='Mo')].name",
    "$.people[0,1].name", "$['a','flag']", "$..name", "$..age", "$.people..age", "$.a.b", "$.flag", "a", "$.",
    "$[", "$[0]",
)  # fmt: skip
JSONPATHS = tuple(f"jsonpath(document, {json.dumps(path)})" for path in _PATHS)
JSONPATH_VARIABLES = {"document": _DOCUMENT}
