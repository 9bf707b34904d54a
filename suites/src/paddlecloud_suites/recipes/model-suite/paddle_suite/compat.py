"""What suite code of 2022 needs on the Paddle and Python of these images, each in one place; imported before the suite.

Only what a suite's program asked for and failed without: `suites.yaml` pins the versions these were seen with.
"""

import zlib  # noqa: F401 - before Paddle 2.6, whose library exports its own inflate*: otherwise Python crashes

import numpy as np

for _name, _type in (("int", int), ("float", float), ("bool", bool), ("object", object)):
    if _name not in np.__dict__:  # numpy 1.24 took these names away
        setattr(np, _name, _type)


def export_for_paddle_2():
    """`inference.pdmodel` by Paddle 3: its functions that are implemented in C++ know only the new format."""
    import paddle
    from paddle.base.framework import Variable
    from paddle.base.layer_helper import LayerHelper

    def with_old_format(name, new):
        def function(x, *rest, **named):
            if not isinstance(x, Variable):
                return new(x, *rest, **named)
            helper = LayerHelper(name)
            out = helper.create_variable_for_type_inference(x.dtype)
            helper.append_op(type=name, inputs={"X": x}, outputs={"Out": out})
            return out

        return function

    for name in ("sigmoid",):
        changed = with_old_format(name, getattr(paddle.nn.functional, name))
        for module in (paddle, paddle.nn.functional, paddle.nn.functional.activation):
            setattr(module, name, changed)


# mypy: ignore-errors
