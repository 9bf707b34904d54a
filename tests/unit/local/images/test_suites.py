"""`suites.yaml`: the recipes checked in are those that it gives, and a mistake in it names the file and the key."""

from __future__ import annotations

import copy
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddlecloud.local.images.errors import RecipeError
from paddlecloud.local.images.shipped import SUITES_FILE
from paddlecloud.local.images.suites import parse_suites, read_suites, recipes

SUITES = Path(__file__).parents[4] / "suites"
SHIPPED = SUITES / "src/paddlecloud_suites" / SUITES_FILE


def test_the_recipes_of_the_suites_are_made_from_the_file() -> None:
    made: dict[Path, str] = runpy.run_path(str(SUITES / "rendered.py"))["files"]()
    old = [
        str(path.relative_to(SUITES)) for path, text in made.items() if not path.exists() or path.read_text() != text
    ]
    assert not old, f"`make rendered` writes {', '.join(old)} anew: look at the difference, then commit it"


def test_every_suite_says_where_it_is_from_under_which_licence_and_what_differs() -> None:
    for name, body in recipes(read_suites(SHIPPED)).items():
        labels = {key.rpartition(".")[2]: value for key, value in body["labels"].items()}
        assert labels["source"].startswith("https://"), name
        assert labels["licenses"], name
        assert labels["version"] in body["stands-for"], name
        assert body["names"][0] == f"paddlecloud/{name}:{labels['version']}"


def test_the_programs_of_a_suite_lie_in_its_folder() -> None:
    for suite in read_suites(SHIPPED).suites:
        home = SHIPPED.parent / "recipes" / suite.repository_name / "home"
        assert {"train", "eval", "export"} <= set(suite.programs)
        assert not [program for program in suite.programs.values() if not (home / program).is_file()]
        assert list((home / "configs/tiny").glob("*.y*ml")), "something that trains on two cores"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"branhc": "develop"}, "suites: PaddleOCR: unknown field 'branhc'; did you mean \"branch\"?"),
        ({"version": 2.1}, "suites: PaddleOCR: version is a number here; put it in quotes"),
        ({"branch": "release/"}, "suites: PaddleOCR: branch: 'release/' is no branch"),
        (
            {"packages": ["unstructured-paddleocr>=2"]},
            "packages: 'unstructured-paddleocr>=2' is no pin; write name==version",
        ),
        ({"licence": None}, "suites: PaddleOCR: licence is missing"),
        ({"requires": "numpy"}, "suites: PaddleOCR: requires must be a list of texts"),
        ({"programs": ["train"]}, "suites: PaddleOCR: programs must map texts to texts"),
    ],
)
def test_a_mistake_names_the_file_and_the_key(change: dict[str, Any], message: str) -> None:
    body = copy.deepcopy(yaml.safe_load(SHIPPED.read_text()))
    body["suites"]["PaddleOCR"].update(change)
    with pytest.raises(RecipeError) as refused:
        parse_suites(body, Path("my/suites.yaml"))
    assert str(refused.value).startswith("my/suites.yaml: ")
    assert message in str(refused.value)


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="no such file"):
        read_suites(tmp_path / SUITES_FILE)
    (tmp_path / SUITES_FILE).write_text("[]")
    with pytest.raises(RecipeError, match="must be a mapping"):
        read_suites(tmp_path / SUITES_FILE)
