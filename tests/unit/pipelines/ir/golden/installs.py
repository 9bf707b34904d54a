"""Python components as kfp compiles them by default: every step installs kfp, and the packages that it names."""

from kfp import dsl


@dsl.component(base_image="paddlecloud/kfp:2")
def double(x: int) -> int:
    return 2 * x


@dsl.component(base_image="paddlecloud/kfp:2", packages_to_install=["six"])
def add(x: int, y: int = 1) -> int:
    return x + y


@dsl.pipeline(name="installs")
def pipeline(x: int = 4) -> int:
    return add(x=double(x=x).output).output
