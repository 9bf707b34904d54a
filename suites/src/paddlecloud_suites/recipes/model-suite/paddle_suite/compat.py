"""What suite code of 2022 needs on the Paddle and Python of these images, each in one place; imported before the suite.

Only what a suite's program asked for and failed without: `suites.yaml` pins the versions these were seen with.
"""

import zlib  # noqa: F401 - before Paddle 2.6, whose library exports its own inflate*: otherwise Python crashes

import numpy as np

for _name, _type in (("int", int), ("float", float), ("bool", bool), ("object", object)):
    if _name not in np.__dict__:  # numpy 1.24 took these names away
        setattr(np, _name, _type)


def whole_saves():
    """A rank that is killed while it saves leaves the file that was there before."""
    import os

    import paddle

    save = paddle.save

    def saved(value, path, *rest, **named):
        if not isinstance(path, str):
            return save(value, path, *rest, **named)
        save(value, f"{path}.new", *rest, **named)
        os.replace(f"{path}.new", path)

    paddle.save = saved


def numbers_of_tensors():
    """Losses have no dimension since Paddle 2.5, and code of 2022 takes `loss.numpy()[0]`."""
    import paddle

    numpy = paddle.Tensor.numpy

    def with_a_dimension(tensor, *args, **named):
        found = numpy(tensor, *args, **named)
        return found.reshape([1]) if found.ndim == 0 else found

    paddle.Tensor.numpy = with_a_dimension


def joined_numbers():
    """`paddle.concat` of numbers without a dimension, as PaddleSeg's metrics do. Not for export, which traces it."""
    import paddle

    concat = paddle.concat

    def joined(parts, axis=0, name=None):
        if isinstance(parts, (list, tuple)) and parts and all(getattr(part, "ndim", 1) == 0 for part in parts):
            parts = [part.reshape([1]) for part in parts]
        return concat(parts, axis, name)

    paddle.concat = joined


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
