"""What each task makes of the tensors of a network: boxes, text, masks, labels. Tables of arrays, without a server."""

from __future__ import annotations

import base64
import io
import math
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from paddlecloud.serving import tasks
from paddlecloud.serving.errors import BadInput
from paddlecloud.serving.tasks import geometry, pictures, sounds
from paddlecloud.serving.tensors import TensorSpec

from .conftest import picture

X, Y, Z = (TensorSpec(name, "FP32") for name in ("x", "y", "z"))


def task(folder: Path, name: str, *, inputs: tuple[TensorSpec, ...] = (X,), **options: Any) -> Any:
    made = tasks.load(folder, {"task": name, **options})
    made.bind(inputs, (Y, Z))
    return made


@pytest.mark.parametrize("name", tasks.NAMES)
def test_every_task_says_what_it_takes_and_gives(name: str, tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n")
    options = {
        "ocr-rec": {"size": [8, 8], "characters": ["A"]},
        "text-clas": {"vocabulary": "vocab.txt"},
        "sound-clas": {},
    }.get(name, {"size": [8, 8]})
    made = tasks.load(tmp_path, {"task": name, **options})
    assert made.outputs
    assert all(spec.shape == (-1,) and spec.datatype == "BYTES" for spec in made.inputs)


def test_lines_of_text_get_rectangles_in_pixels_of_the_picture(tmp_path: Path) -> None:
    made = task(tmp_path, "ocr-det", size=[80, 80], boxThreshold=0.5)
    plane = np.zeros((1, 1, 80, 80), "float32")
    plane[0, 0, 20:30, 10:50] = 0.9
    plane[0, 0, 60:62, 10:12] = 0.9  # too small for text
    plane[0, 0, 50:58, 20:60] = 0.4  # above the threshold, below that of boxes
    (boxes,) = made.postprocess({"y": plane}, [{pictures.SIZE: (160, 240)}])["boxes"]
    assert [box["score"] for box in boxes] == [pytest.approx(0.9, abs=1e-3)]
    # 39 x 9 pixels between the middles; it grows by 39 * 9 * 1.5 / 96 = 5.5 on each side, then threefold and twofold.
    assert boxes[0]["points"] == [[14, 29], [163, 29], [163, 69], [14, 69]]


def test_a_line_that_is_turned_gets_a_rectangle_that_is_turned() -> None:
    along, across = np.array([math.cos(0.5), math.sin(0.5)]), np.array([-math.sin(0.5), math.cos(0.5)])
    points = np.array([[50, 40] + a * along + b * across for a in range(-20, 21) for b in range(-4, 5)])
    found = geometry.smallest_rectangle(points)
    assert sorted(found.sides) == [pytest.approx(8), pytest.approx(40)]
    assert found.middle.tolist() == [pytest.approx(50), pytest.approx(40)]
    upper_left = [50, 40] - 20 * along - 4 * across
    assert any(np.allclose(corner, upper_left) for corner in found.corners())


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        (["....", "...."], 0),
        (["#..#", "...."], 2),
        (["#...", ".#..", "..#."], 1),
        (["#.#", "#.#", "###"], 1),
        (["###", "..#", "###"], 1),
        (["#.#.#", ".....", "#.#.#"], 6),
        (["##..##", ".#..#.", ".####."], 1),
    ],
)
def test_pixels_that_touch_are_one_component(rows: list[str], count: int) -> None:
    mask = np.array([[letter == "#" for letter in row] for row in rows])
    assert len(list(geometry.components(mask))) == count


def test_components_are_those_of_a_flood_fill(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    for _ in range(40):
        mask = random.random((9, 11)) < random.random()
        left, count = {(y, x) for y, x in zip(*np.nonzero(mask), strict=True)}, 0
        while left:
            count, border = count + 1, [left.pop()]
            while border:
                y, x = border.pop()
                near = {(y + a, x + b) for a in (-1, 0, 1) for b in (-1, 0, 1)} & left
                left -= near
                border.extend(near)
        assert len(list(geometry.components(mask))) == count


def test_boxes_of_several_pictures_go_to_the_pictures_they_are_of(tmp_path: Path) -> None:
    names = tuple(TensorSpec(name, "FP32") for name in ("image", "scale_factor"))
    made = task(tmp_path, "det", inputs=names, size=[96, 96], labels=["box", "ball"])
    entry = {"image": picture((0, 0, 0), size=(48, 192))}
    ready = made.preprocess(entry)
    assert ready["image"].shape == (3, 96, 96)
    assert ready["scale_factor"].tolist() == [0.5, 2.0]
    rows = np.array(
        [[1, 0.9, 1, 2, 3, 4], [0, 0.2, 1, 1, 1, 1], [-1, -1, 0, 0, 0, 0], [0, 0.8, 5, 6, 7, 8.04]], "float32"
    )
    found = made.postprocess({"y": rows, "z": np.array([2, 2], "int32")}, [entry, entry])["boxes"]
    assert [[(box["label"], box["box"]) for box in boxes] for boxes in found] == [
        [("ball", [1, 2, 3, 4])],
        [("box", [5, 6, 7, 8])],
    ]


@pytest.mark.parametrize("scores", [False, True])
def test_a_mask_is_as_large_as_the_picture_that_was_sent(tmp_path: Path, scores: bool) -> None:
    made = task(tmp_path, "seg", size=[4, 4], labels=["ground", "sky"])
    classes = np.array([[[1, 1, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]])
    sent = np.stack([1 - classes, classes], axis=1).astype("float32") if scores else classes
    answer = made.postprocess({"y": sent}, [{pictures.SIZE: (8, 12)}])
    assert answer["areas"] == [{"ground": 0.75, "sky": 0.25}]
    mask = Image.open(io.BytesIO(base64.b64decode(answer["mask"][0])))
    assert mask.size == (12, 8)
    assert np.asarray(mask).mean(1).tolist() == [1, 1, 0, 0, 0, 0, 0, 0]


def test_repeated_characters_count_once_unless_a_blank_stands_between(tmp_path: Path) -> None:
    made = task(tmp_path, "ocr-rec", size=[32, 100], characters=["A", "B"])
    steps = np.eye(3, dtype="float32")[[1, 1, 0, 1, 2, 2, 0]][None] * 0.75
    assert made.postprocess({"y": steps}, [{}]) == {"text": ["AAB"], "score": [0.75]}
    assert made.postprocess({"y": np.eye(3, dtype="float32")[[0, 0]][None]}, [{}]) == {"text": [""], "score": [0.0]}


def test_a_line_that_is_short_keeps_its_ratio_and_is_filled_up(tmp_path: Path) -> None:
    made = task(tmp_path, "ocr-rec", size=[32, 100], characters=["A"])
    planes = made.preprocess({"image": picture((255, 255, 255), size=(60, 30))})["x"]
    assert planes.shape == (3, 32, 100)
    assert (planes[:, :, :64] == 1).all()
    assert (planes[:, :, 64:] == 0).all()
    assert (made.preprocess({"image": picture((255, 255, 255), size=(600, 30))})["x"] == 1).all()


def test_words_become_the_longest_pieces_that_the_vocabulary_has(tmp_path: Path) -> None:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "play", "##ing", "##in", "!", "我", "cafe"]
    made = task(tmp_path, "text-clas", vocabulary=words, length=10)
    numbers = made.preprocess({"text": "Playing! 我 zebra Café"})["x"].tolist()
    assert numbers == [2, 4, 5, 7, 8, 1, 9, 3, 0, 0]
    short = task(tmp_path, "text-clas", inputs=(X, Z), vocabulary=words, length=3)
    assert short.preprocess({"text": b"play play play"})["x"].tolist() == [2, 4, 3]
    assert short.preprocess({"text": ""})["z"].tolist() == [0, 0, 0]


@pytest.mark.parametrize("sent", [{}, {"text": 7}, {"text": "x" * 100_001}])
def test_what_is_no_text_is_refused(tmp_path: Path, sent: dict[str, Any]) -> None:
    made = task(tmp_path, "text-clas", vocabulary=["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
    with pytest.raises(BadInput, match="feed needs 'text'"):
        made.preprocess(sent)


@pytest.mark.parametrize("rows", [[[0.1, 0.7, 0.2]], [[1.0, 9.0, 2.0]]])
def test_scores_become_probabilities_once(tmp_path: Path, rows: list[list[float]]) -> None:
    made = task(tmp_path, "clas", size=[4, 4], labels=["a", "b"])
    answer = made.postprocess({"y": np.array(rows, "float32")}, [{}])
    wanted = 0.7 if rows[0][1] < 1 else math.exp(9) / sum(map(math.exp, rows[0]))
    assert answer == {"label": ["b"], "prob": [pytest.approx(wanted)]}


def tone(hertz: float, *, rate: int = 16_000, width: int = 2) -> bytes:
    values = (0.3 * np.sin(2 * np.pi * hertz * np.arange(rate) / rate) * 32767).astype("<i2")
    written = io.BytesIO()
    with wave.open(written, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(values.tobytes())
    return written.getvalue()


def test_a_tone_has_its_energy_in_the_band_of_its_pitch(tmp_path: Path) -> None:
    made = task(tmp_path, "sound-clas")
    energies = made.preprocess({"sound": tone(2000)})["x"]
    assert energies.shape == (51, 64)
    filters = sounds.mel_filters(16_000, 512, 64, 50, 8000)
    assert energies.mean(0).argmax() == filters[:, round(2000 / (16_000 / 512))].argmax()


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (tone(300, rate=8000), "the WAV file has 8000 Hz and 16 bits; expected are 16000 Hz"),
        (tone(300, width=1), "8 bits"),
        (b"RIFF....", "it is no WAV file"),
        ("noise!", "is neither a URL"),
    ],
)
def test_what_is_no_sound_of_the_network_is_refused(tmp_path: Path, sent: Any, words: str) -> None:
    with pytest.raises(BadInput) as refused:
        task(tmp_path, "sound-clas").preprocess({"sound": sent})
    assert words in str(refused.value)
