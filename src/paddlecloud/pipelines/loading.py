"""Component files handed to whichever generation of kfp is installed: both have `components.load_component_from_file`.

kfp is imported when a function is called, so `paddlecloud` does not depend on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Protocol

FOLDER = Path(__file__).parent / "components"


class Channel(Protocol):
    """A value that is known only when the pipeline runs: a parameter of it, or the output of another step."""

    @property
    def full_name(self) -> str: ...


def task(component: str, arguments: Mapping[str, Any]) -> Any:
    """A task of the component, for the pipeline that is being built. Arguments that are None are left out."""
    return load(component)(**{name: value for name, value in arguments.items() if value is not None})


@cache
def load(component: str) -> Any:
    """What the installed kfp makes of a component file such as `operator/dataset`."""
    try:
        from kfp import components
    except ImportError as error:
        raise ImportError(
            f"paddlecloud.pipelines.{Path(component).name} builds a step of a kfp pipeline: pip install kfp"
        ) from error
    return components.load_component_from_file(str(FOLDER / f"{component}.yaml"))
