"""All components, and where their files lie."""

from __future__ import annotations

from pathlib import Path

from paddlecloud.pipelines.components.declaration import Component
from paddlecloud.pipelines.components.launcher_set import LAUNCHER_SET
from paddlecloud.pipelines.components.operator_set import OPERATOR_SET
from paddlecloud.pipelines.components.suite_set import SUITE_SET

COMPONENTS: tuple[Component, ...] = (*OPERATOR_SET, *LAUNCHER_SET, *SUITE_SET)
FOLDER = Path(__file__).parent


def path(component: Component) -> Path:
    return FOLDER / component.set / f"{component.file}.yaml"


def find(program: str) -> Component | None:
    """The component that a launcher's name stands for."""
    return next((one for one in COMPONENTS if one.launcher == program), None)
