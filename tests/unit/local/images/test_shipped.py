"""Recipes of the platform itself, and those of the package paddlecloud-suites beside it or not."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import paddlecloud
import paddlecloud_suites
from paddlecloud.local.images import shipped
from paddlecloud.local.images.errors import ImageUnavailable
from paddlecloud.local.images.store import ImageStore

from .test_store import write_recipe

ROOT = Path(__file__).parents[4]
INSTALL = 'paddlecloud-suites, which is not installed: pip install "paddlecloud[suites]"'


@pytest.fixture
def without_suites(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "SUITES", "a_package_that_is_not_installed")


def test_the_list_of_suite_images_is_that_of_the_package() -> None:
    recipes = (ROOT / "suites/src/paddlecloud_suites/recipes").glob("*/image.yaml")
    names = [name for recipe in recipes for name in yaml.safe_load(recipe.read_text())["names"]]
    assert sorted(names) == list(shipped.SUITE_IMAGES)


def test_both_packages_have_one_version() -> None:
    assert paddlecloud_suites.__version__ == paddlecloud.__version__
    assert f'"paddlecloud-suites=={paddlecloud.__version__}"' in (ROOT / "pyproject.toml").read_text()


@pytest.mark.usefixtures("without_suites")
def test_the_recipes_of_the_platform_need_no_other_package(tmp_path: Path) -> None:
    found = {image.name: image.state for image in ImageStore(cache=tmp_path / "cache").overview()}
    own = {"paddlecloud/paddle:3.3", "paddlecloud/runtime", "paddlecloud/serving", "paddlecloud/elastic:latest"}
    assert own <= set(found)
    assert not set(found) & set(shipped.SUITE_IMAGES)
    assert [name for name, state in found.items() if state.startswith("broken")] == []


@pytest.mark.usefixtures("without_suites")
@pytest.mark.parametrize("image", ["paddlecloud/paddleocr", "mirror.example/paddlecloud/paddleocr:latest"])
async def test_an_image_of_the_suites_without_the_package_says_what_to_install(image: str, tmp_path: Path) -> None:
    with pytest.raises(ImageUnavailable) as refused:
        await ImageStore(cache=tmp_path / "cache").prepare(image)
    assert f'image "{image}" comes with the package {INSTALL}' in str(refused.value)


@pytest.mark.usefixtures("without_suites")
async def test_so_does_an_image_that_is_based_on_one(tmp_path: Path) -> None:
    write_recipe(tmp_path / "recipes", "own", base="paddlecloud/model-suite")
    store = ImageStore(cache=tmp_path / "cache", folders=[tmp_path / "recipes"])
    with pytest.raises(ImageUnavailable) as refused:
        await store.prepare("example.com/own:v1")
    assert f'image "paddlecloud/model-suite" comes with the package {INSTALL}' in str(refused.value)


@pytest.mark.usefixtures("without_suites")
async def test_other_images_are_not_blamed_on_the_package(tmp_path: Path) -> None:
    with pytest.raises(ImageUnavailable, match="no recipe answers"):
        await ImageStore(cache=tmp_path / "cache").prepare("paddlecloud/paddleocr:no-such-tag")


async def test_a_pod_of_a_misspelt_image_gets_the_question_that_the_command_line_asks(tmp_path: Path) -> None:
    with pytest.raises(ImageUnavailable, match='"paddlecloud/paddle:3.9": did you mean "paddlecloud/paddle:3.3"?'):
        await ImageStore(cache=tmp_path / "cache").prepare("paddlecloud/paddle:3.9")


@pytest.mark.parametrize(
    ("image", "base"),
    [
        ("paddlepaddle/paddle:3.0.0", "3.3"),
        ("paddlepaddle/paddle:3.3.1-gpu-cuda12.6-cudnn9.5", "3.3"),
        ("registry.example.com/paddlepaddle/paddle:2.5.2", "2.6"),
    ],
)
async def test_an_image_of_paddle_without_a_recipe_names_the_base_to_build_upon(
    tmp_path: Path, image: str, base: str
) -> None:
    with pytest.raises(ImageUnavailable, match=f'write one that begins with "base: paddlecloud/paddle:{base}"'):
        await ImageStore(cache=tmp_path / "cache").prepare(image)


async def test_a_package_that_is_installed_while_the_platform_runs_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipped, "SUITES", "suites_of_this_test")
    store = ImageStore(cache=tmp_path / "cache")
    assert store.find("example.com/late:v1") is None
    write_recipe(tmp_path / "site/suites_of_this_test/recipes", "late")
    (tmp_path / "site/suites_of_this_test/__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    store.reload()
    found = store.find("example.com/late:v1")
    assert found is not None
    assert found.folder == tmp_path / "site/suites_of_this_test/recipes/late"
