"""Which pods share a warm parent, and how many parents there are."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from harness import eventually
from paddlecloud.kube.clock import FakeClock
from paddlecloud.local.images.environment import Environment
from paddlecloud.local.kubelet.node import zygote_client
from paddlecloud.local.kubelet.node.warmparents import IDLE, MOST, WarmParents
from paddlecloud.local.kubelet.node.zygote_client import ZygoteClient
from paddlecloud.local.kubelet.pod.container_order import image_env

PROGRAM = ("python", "train.py")


@pytest.fixture
def image(tmp_path: Path) -> Environment:
    (tmp_path / "ranked.py").write_text("import os\nRANK = os.environ.get('RANK')\n")
    (tmp_path / "choosy.py").write_text("import os\nassert os.environ.get('RANK') != '9'\n")
    (tmp_path / "greedy.py").write_text("import os\nALL = dict(os.environ)\n")
    (tmp_path / "messy.py").write_text("open('trace.log', 'w').close()\n")
    variables = {"PYTHONPATH": str(tmp_path), "HOME": str(tmp_path / "home")}
    return Environment("sha256:1", path=(str(Path(sys.executable).parent),), env=variables, preload=("ranked",))


@pytest.fixture
async def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def parents(clock: FakeClock) -> AsyncIterator[WarmParents]:
    parents = WarmParents(clock)
    yield parents
    await parents.stop()


async def found(parents: WarmParents, image: Environment, **env: str) -> ZygoteClient | None:
    """What a pod gets after one like it was there."""
    for _ in range(2):
        zygote = parents.find(image, PROGRAM, {**image_env(image), **env})
        await parents.settled()
    return zygote


async def test_pods_share_a_parent_unless_they_differ_in_what_its_modules_read(
    parents: WarmParents, image: Environment
) -> None:
    assert parents.find(image, PROGRAM, image_env(image)) is None, "the first starts cold"
    plain = await found(parents, image)
    assert plain is not None
    assert await found(parents, image, TOKEN="a secret", PYTHONUNBUFFERED="1") is plain
    ranks = [await found(parents, image, RANK=rank) for rank in ("0", "1", "0")]
    assert None not in ranks
    assert ranks[0] is ranks[2]
    assert len({plain, *ranks}) == 3


async def test_the_first_pod_of_an_image_has_the_parent_made_that_the_next_like_it_needs(
    parents: WarmParents, image: Environment
) -> None:
    """Although what its modules read is known only after they were imported."""
    assert await found(parents, image, RANK="7") is not None


async def test_a_job_of_many_ranks_does_not_have_parents_replace_each_other(
    parents: WarmParents, image: Environment, clock: FakeClock
) -> None:
    first = [await found(parents, image, RANK=str(rank)) for rank in range(MOST)]
    assert None not in first
    assert await found(parents, image, RANK="99") is None
    await clock.advance(IDLE)
    assert await found(parents, image, RANK="99") is not None
    assert parents.find(image, PROGRAM, {**image_env(image), "RANK": "0"}) is None, "it made room"


async def test_modules_that_hang_at_their_import_keep_nothing_else_cold_and_are_ended(
    parents: WarmParents, image: Environment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "stuck.py").write_text(
        "import os, time\nif os.environ.get('RANK') == '9':\n"
        f"    open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n    time.sleep(3600)\n"
    )
    other = Environment("sha256:2", path=image.path, env=image.env, preload=("stuck",))
    assert await found(parents, other, RANK="1") is not None
    with monkeypatch.context() as patched:
        patched.setattr(zygote_client, "START_TIMEOUT", 3.0)
        assert await found(parents, other, RANK="9") is None
    await eventually(lambda: not Path(f"/proc/{(tmp_path / 'pid').read_text()}").exists())
    assert await found(parents, other, RANK="2") is not None


async def test_variables_of_one_pod_with_which_modules_fail_do_not_keep_the_others_cold(
    parents: WarmParents, image: Environment
) -> None:
    other = Environment("sha256:2", path=image.path, env=image.env, preload=("choosy",))
    plain = await found(parents, other)
    assert await found(parents, other, RANK="9") is None
    assert plain is not None
    assert await found(parents, other) is plain
    assert await found(parents, other, RANK="1") is not None


@pytest.mark.parametrize("module", ["greedy", "messy"])
async def test_modules_that_depend_on_the_whole_environment_or_write_where_they_are_are_not_preloaded(
    parents: WarmParents, image: Environment, module: str
) -> None:
    other = Environment("sha256:2", path=image.path, env=image.env, preload=(module,))
    assert await found(parents, other) is None


@pytest.mark.parametrize("program", [("sh", "-c", "python train.py"), ("python", "-O", "train.py"), ()])
async def test_no_parent_is_made_for_what_would_not_fork_from_it(
    parents: WarmParents, image: Environment, program: tuple[str, ...]
) -> None:
    parents.find(image, program, image_env(image))
    await parents.settled()
    assert parents.find(image, PROGRAM, image_env(image)) is None


async def test_a_home_directory_with_other_files_is_left_alone(parents: WarmParents, image: Environment) -> None:
    home = Path(image.env["HOME"])
    home.mkdir(mode=0o700)
    (home / "thesis.txt").write_text("the only copy")
    assert await found(parents, image) is None
    assert [path.name for path in home.iterdir()] == ["thesis.txt"]


async def test_a_parent_finds_nothing_at_home_of_an_earlier_one(
    parents: WarmParents, image: Environment, tmp_path: Path
) -> None:
    home = Path(image.env["HOME"])
    assert await found(parents, image) is not None
    (home / "deep").mkdir()
    (home / "deep" / "trace").touch()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    (home / "link").symlink_to(outside)
    assert await found(parents, image, RANK="1") is not None
    assert not (home / "deep").exists()
    assert not (home / "link").is_symlink()
    assert (outside / "kept").exists()
