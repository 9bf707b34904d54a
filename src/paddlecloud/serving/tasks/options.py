"""Parameters of a task in serving.yaml, each read as what it must be; the message names the field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paddlecloud.kube.nearest import question
from paddlecloud.kube.wording import cause_of
from paddlecloud.serving.errors import ModelError

LARGEST_SIDE = 4096
MOST_LABELS = 1_000_000


class Options:
    def __init__(self, folder: Path, task: str, given: dict[str, Any]) -> None:
        self.task = task
        self._folder = folder
        self._given = given
        self._known: list[str] = []

    def number(self, name: str, default: float, low: float, high: float) -> float:
        value = self._take(name, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
            raise self._wrong(name, f"a number from {low:g} to {high:g}", value)
        return float(value)

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        value = self._take(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self._wrong(name, f"a whole number from {low} to {high}", value)
        return value

    def size(self, name: str = "size") -> tuple[int, int]:
        """Height and width."""
        value = self._take(name, None)
        if not (isinstance(value, list) and len(value) == 2 and all(_is_side(side) for side in value)):
            raise self._wrong(name, f"[HEIGHT, WIDTH] in pixels, {LARGEST_SIDE} at most", value)
        return value[0], value[1]

    def three(self, name: str, default: tuple[float, float, float]) -> tuple[float, ...]:
        value = self._take(name, list(default))
        if not (isinstance(value, list) and len(value) == 3 and all(isinstance(one, (int, float)) for one in value)):
            raise self._wrong(name, "three numbers", value)
        return tuple(float(one) for one in value)

    def one_of(self, name: str, default: str, *others: str) -> str:
        value = self._take(name, default)
        if value not in (default, *others):
            raise self._wrong(name, " or ".join((default, *others)), value)
        return str(value)

    def lines(self, name: str, default: list[str] | None = None) -> list[str]:
        """A list of texts, or the name of a file beside the model with one in each line."""
        value = self._take(name, default)
        if isinstance(value, str):
            value = self._file(name, value)
        if not isinstance(value, list) or len(value) > MOST_LABELS:
            raise self._wrong(name, "a list, or the name of a file in the model's folder", value)
        return [str(one) for one in value]

    def refuse_others(self) -> None:
        others = sorted(set(self._given) - set(self._known))
        if others:
            meant = question(others[0], self._known)
            raise ModelError(
                f"serving.yaml: processing.{others[0]}: {self.task} does not know it; it knows "
                f"{', '.join(sorted(self._known))}" + (f": {meant}" if meant else "")
            )

    def _take(self, name: str, default: Any) -> Any:
        self._known.append(name)
        return self._given.get(name, default)

    def _file(self, name: str, value: str) -> list[str]:
        path = (self._folder / value).resolve()
        if not path.is_relative_to(self._folder.resolve()) or not path.is_file():
            raise ModelError(f"serving.yaml: processing.{name}: there is no file {value} in the model's folder")
        try:
            return path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError(f"serving.yaml: processing.{name}: {value}: {cause_of(error)}") from error

    def _wrong(self, name: str, wanted: str, value: Any) -> ModelError:
        found = "it is not there" if value is None else f"not {str(value)[:80]!r}"
        return ModelError(f"serving.yaml: processing.{name}: {self.task} takes {wanted}; {found}")


def _is_side(side: Any) -> bool:
    return isinstance(side, int) and not isinstance(side, bool) and 1 <= side <= LARGEST_SIDE
