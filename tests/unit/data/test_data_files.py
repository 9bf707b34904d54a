"""Reading through a node's cache: what is there, what is not, and what is reported."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from harness import until
from paddlecloud.data import Files
from paddlecloud.data.cache_folders import CacheFolders
from unit.data.samples import COUNT, SIZE, Sampler, cached, content, fork, paths

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")


def test_without_a_cache_files_are_read_where_they_lie(data: Path) -> None:
    files = Files(paths(), data=str(data))
    files.follow(Sampler(), epochs=3)
    assert [files.read(number) for number in (5, 0)] == [content(5), content(0)]
    figures = files.figures()[0]
    assert (figures.hits, figures.misses) == (0, 0), "there is no telling"


def test_what_is_cached_is_a_hit_and_the_rest_is_read_from_its_origin(data: Path, cache: Path) -> None:
    (cache / "images").mkdir()
    (cache / "images" / "003.jpg").write_bytes(content(3))
    (data / "images" / "003.jpg").unlink()
    files = Files(paths(), data=str(data), cache=str(cache))
    assert [files.read(number) for number in (3, 4, -1)] == [content(3), content(4), content(63)]
    assert (files.figures()[0].hits, files.figures()[0].misses) == (1, 2)
    assert files.figures()[0].stall_seconds > 0, "nobody watches the loop: the readers' time counts"


def test_a_cache_may_have_several_folders(data: Path, tmp_path: Path) -> None:
    (tmp_path / "ssd" / "images").mkdir(parents=True)
    for number in range(10):
        (tmp_path / "ssd" / "images" / f"{number:03}.jpg").write_bytes(content(number))
    sampler, memory = Sampler(), tmp_path / "mem"
    files = Files(paths(), data=str(data), cache=f"{memory}:{tmp_path / 'ssd'}")
    files.follow(sampler, epochs=1)
    until(lambda: len(cached(memory)) == COUNT - 10)
    for batch in sampler:
        assert [files.read(index) for index in batch] == [content(index) for index in batch]
    assert (files.figures()[0].hits, files.figures()[0].misses) == (COUNT, 0)


def test_copies_look_like_their_originals(data: Path, cache: Path) -> None:
    """Cache servers judge a copy by size and time."""
    files = Files(paths(), data=str(data), cache=str(cache))
    files.follow(Sampler(), epochs=1)
    until(lambda: len(cached(cache)) == COUNT)
    for path in paths():
        assert (cache / path).stat().st_mtime_ns == (data / path).stat().st_mtime_ns


def test_places_come_from_the_environment(data: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDLECLOUD_DATA_DIR", str(data))
    monkeypatch.setenv("PADDLECLOUD_CACHE_DIR", str(cache))
    files = Files(paths())
    assert files.read(1) == content(1)
    assert files.figures()[0].misses == 1


def test_lists_label_files_and_folders_give_the_order(data: Path) -> None:
    (data / "train.txt").write_text("images/007.jpg 3\nimages/001.jpg 0\n\n")
    listed = Files.listed("train.txt", data=str(data))
    assert [listed[number] for number in range(len(listed))] == ["images/007.jpg", "images/001.jpg"]
    (data / ".hidden").mkdir()
    (data / ".hidden" / "x").touch()
    walked = Files.walk("images", data=str(data))
    assert [walked[number] for number in range(len(walked))] == paths()


def test_absolute_paths_of_the_set_are_cached_and_those_outside_are_not(
    data: Path, cache: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside.jpg").write_bytes(b"outside")
    names = [str(data / "images" / "001.jpg"), "../outside.jpg", str(tmp_path / "outside.jpg")]
    files = Files(names, data=str(data), cache=str(cache))
    assert files[0] == "images/001.jpg"
    assert [files.read(number) for number in range(3)] == [content(1), b"outside", b"outside"]


def test_a_list_that_leads_out_of_the_set_harms_nothing(data: Path, cache: Path, tmp_path: Path) -> None:
    """What it names is read, and neither replaced by copies nor evicted."""
    victim = tmp_path / "victim.jpg"
    victim.write_bytes(b"the user's own")
    sampler = Sampler()
    files = Files(["../victim.jpg", str(victim), *paths()[2:]], data=str(data), cache=str(cache), quota=20 * SIZE)
    files.follow(sampler, epochs=2)
    for _ in range(2):
        for batch in sampler:
            inside = [index for index in batch if index > 1]
            until(lambda inside=inside: all((cache / files[index]).exists() for index in inside), every=0.01)
            found = [files.read(index) for index in batch]
            assert found == [content(index) if index > 1 else b"the user's own" for index in batch]
    assert victim.read_bytes() == b"the user's own"


@pytest.mark.parametrize("path", ["../x", "/x", "a/../../x", ".paddlecloud/keeper", "./.paddlecloud/keeper"])
def test_nothing_outside_of_the_cache_is_touched(cache: Path, path: str) -> None:
    place = CacheFolders(str(cache / "inner"))
    lock = place.keeper()
    with pytest.raises(ValueError, match="out of the cache"), place.arriving(path) as draft:
        Path(draft).write_text("x")
    with pytest.raises(ValueError, match="out of the cache"):
        place.drop(path)
    assert place.read(path) is None
    assert lock is not None


def test_a_file_that_is_nowhere_fails_as_it_always_would(data: Path, cache: Path) -> None:
    files = Files(["images/none.jpg"], data=str(data), cache=str(cache))
    with pytest.raises(FileNotFoundError, match=r"none\.jpg"):
        files.read(0)


def test_a_dataset_sent_to_a_worker_still_reads(data: Path, cache: Path) -> None:
    copy = pickle.loads(pickle.dumps(Files(paths(), data=str(data), cache=str(cache))))
    assert copy.read(9) == content(9)
    assert copy.figures() == {}


def test_forked_workers_are_counted_in_the_main_process(data: Path, cache: Path) -> None:
    files = Files(paths(), data=str(data), cache=str(cache))
    for _ in range(3):
        child = fork(lambda: all(files.read(number) for number in range(COUNT)))
        assert os.waitpid(child, 0)[1] == 0
    assert files.figures()[0].misses == 3 * COUNT
