"""Generated data: each file is as the suite's readers expect it, and the same seed gives the same bytes."""

from __future__ import annotations

import json
import struct
import wave
import zlib
from pathlib import Path

import pytest

from paddlecloud.suites import samples
from paddlecloud.suites.samples import imagefolder
from paddlecloud.suites.samples.canvas import GLYPHS, Canvas

SIZES = {"imagefolder": (64, 64, 3), "coco": (128, 128, 3), "icdar": (160, 160, 3), "masks": (128, 128, 3)}


def pixels(path: Path) -> tuple[tuple[int, int, int], bytes]:
    """Width, height and channels, and the bytes of an unfiltered PNG."""
    content = path.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(content):
        (size,) = struct.unpack(">I", content[at : at + 4])
        kind, body = content[at + 4 : at + 8], content[at + 8 : at + 8 + size]
        assert struct.unpack(">I", content[at + 8 + size : at + 12 + size]) == (zlib.crc32(kind + body),)
        chunks[kind] = body
        at += 12 + size
    width, height, bits, colours = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert bits == 8
    channels = {0: 1, 2: 3}[colours]
    raw, line = zlib.decompress(chunks[b"IDAT"]), 1 + width * channels
    assert len(raw) == height * line
    assert all(raw[row * line] == 0 for row in range(height))
    return (width, height, channels), b"".join(raw[row * line + 1 : (row + 1) * line] for row in range(height))


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", samples.FORMATS)
def test_the_same_seed_gives_the_same_files_and_another_one_others(name: str, tmp_path: Path) -> None:
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert samples.generate(name, tmp_path / folder, count=8, seed=seed) == (8, 4)
    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert files(tmp_path / "a") != files(tmp_path / "c")


@pytest.mark.parametrize("name", SIZES)
def test_pictures_are_png_of_one_size(name: str, tmp_path: Path) -> None:
    samples.generate(name, tmp_path, count=4)
    found = [path for path in tmp_path.rglob("*.png") if "words" not in path.parts and "labels" not in path.parts]
    assert len(found) == 8
    assert {pixels(path)[0] for path in found} == {SIZES[name]}


def test_lists_of_paddleclas_name_pictures_and_classes(tmp_path: Path) -> None:
    samples.generate("imagefolder", tmp_path, count=8)
    lines = (tmp_path / "train_list.txt").read_text().splitlines()
    for line in lines:
        path, _, label = line.partition(" ")
        assert (tmp_path / path).parent.name == imagefolder.LABELS[int(label)]
    assert sorted(line.split()[1] for line in lines) == sorted("01230123")
    assert (tmp_path / "label.txt").read_text().splitlines()[1] == "1 square"


def test_boxes_of_coco_lie_in_their_pictures_and_contain_what_is_drawn(tmp_path: Path) -> None:
    samples.generate("coco", tmp_path, count=8)
    body = json.loads((tmp_path / "annotations" / "train.json").read_text())
    assert [one["name"] for one in body["categories"]] == ["box", "ball"]
    places = {one["id"]: one["file_name"] for one in body["images"]}
    assert len({one["id"] for one in body["annotations"]}) == len(body["annotations"]) == 16
    for one in body["annotations"]:
        x, y, width, height = one["bbox"]
        assert 0 <= x < x + width <= 128
        assert 0 <= y < y + height <= 128
        raw = pixels(tmp_path / "train" / places[one["image_id"]])[1]
        middle = ((y + height // 2) * 128 + x + width // 2) * 3
        assert 255 in raw[middle : middle + 3]


def test_lines_of_icdar_have_quadrangles_around_dark_letters(tmp_path: Path) -> None:
    samples.generate("icdar", tmp_path, count=4)
    for line in (tmp_path / "train.txt").read_text().splitlines():
        path, _, marks = line.partition("\t")
        raw = pixels(tmp_path / path)[1]
        for mark in json.loads(marks):
            assert set(mark["transcription"]) <= set(GLYPHS)
            (left, top), (right, _), (_, bottom), _ = mark["points"]
            assert 0 <= left < right <= 160
            assert 0 <= top < bottom <= 160
            inside = [raw[(y * 160 + x) * 3] for y in range(top, bottom) for x in range(left, right)]
            assert 0.05 < inside.count(0) / len(inside) < 0.6
    words = (tmp_path / "rec_train.txt").read_text().splitlines()
    assert len(words) == 8
    assert all((tmp_path / line.split("\t")[0]).exists() for line in words)


def test_masks_hold_the_class_of_every_pixel(tmp_path: Path) -> None:
    samples.generate("masks", tmp_path, count=4)
    for line in (tmp_path / "val.txt").read_text().splitlines():
        picture, mask = line.split()
        size, labels = pixels(tmp_path / mask)
        assert size == (128, 128, 1)
        assert {0, 2} <= set(labels) <= {0, 1, 2}
        drawn = pixels(tmp_path / picture)[1]
        assert all(tuple(drawn[at * 3 : at * 3 + 3]) == (255, 0, 0) for at in range(128 * 128) if labels[at] == 2)


def test_every_word_of_a_sentence_is_in_the_vocabulary(tmp_path: Path) -> None:
    samples.generate("text", tmp_path, count=8)
    known = (tmp_path / "vocab.txt").read_text().splitlines()
    assert known[:4] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    for line in (tmp_path / "dev.tsv").read_text().splitlines():
        text, _, label = line.partition("\t")
        assert label in "01"
        assert set(text.split()) <= set(known)


def test_sounds_are_a_second_of_16_khz(tmp_path: Path) -> None:
    samples.generate("wav", tmp_path, count=4)
    with wave.open(str(tmp_path / "train" / "1_3.wav")) as file:
        assert (file.getframerate(), file.getnframes()) == (16000, 16000)
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2)


def test_what_is_drawn_outside_of_a_picture_is_cut_off() -> None:
    drawn = Canvas(4, 4, bytes(16), channels=1)
    drawn.rectangle(-3, 2, 0, 9, (7,))
    drawn.rectangle(9, 0, 12, 3, (9,))
    assert drawn.rows == bytes([0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 7, 0, 0, 0])
