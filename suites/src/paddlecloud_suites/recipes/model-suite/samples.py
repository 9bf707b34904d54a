"""Writes small data sets of generated pictures: `python /opt/suite/samples.py hiertext|icdar2015|coco|imagenet FOLDER`.

Each has the layout of its namesake, so that the manual's arguments find it.
"""

import json
import os
import random
import sys

from PIL import Image, ImageDraw

SIZE, COUNT = 96, 32
WORDS = ("PADDLE", "CLOUD", "TRAIN", "SERVE", "CACHE", "云上飞桨")
COLOURS = {"n01440764": (200, 40, 40), "n01443537": (40, 180, 40), "n01484850": (40, 60, 200)}


def background(rng):
    shade = rng.randrange(0, 60)
    return Image.new("RGB", (SIZE, SIZE), (shade, shade, shade))


def hiertext(folder, rng):
    text_lines(
        folder, rng, {part: (part, f"label_hiertext_{part}.txt") for part in ("train", "val")}, prefix="hiertext/"
    )


def icdar2015(folder, rng):
    parts = {
        "train": ("icdar_c4_train_imgs", "train_icdar2015_label.txt"),
        "val": ("ch4_test_images", "test_icdar2015_label.txt"),
    }
    text_lines(folder, rng, parts)


def text_lines(folder, rng, parts, prefix=""):
    """Lines of text and where they are: `picture<TAB>[{transcription, points}]`, for training and for tests."""
    for part, count in (("train", COUNT), ("val", COUNT // 4)):
        pictures, labels = parts[part]
        lines = []
        for number in range(count):
            image = background(rng)
            x, y = rng.randrange(4, 40), rng.randrange(4, 70)
            word = rng.choice(WORDS[:-1])
            box = ImageDraw.Draw(image).textbbox((x, y), word, font_size=14)
            ImageDraw.Draw(image).text((x, y), word, fill=(230, 230, 230), font_size=14)
            left, top, right, bottom = map(int, box)
            points = [[left, top], [right, top], [right, bottom], [left, bottom]]
            path = f"{pictures}/{number}.jpg"
            save(image, os.path.join(folder, path))
            lines.append(f"{prefix}{path}\t{json.dumps([{'transcription': word, 'points': points}])}\n")
        write(os.path.join(folder, labels), "".join(lines))


def coco(folder, rng):
    """Bright rectangles and discs, with their boxes."""
    images, annotations = [], []
    for number in range(COUNT):
        image, wide = background(rng), rng.randrange(20, 48)
        x, y = rng.randrange(0, SIZE - wide), rng.randrange(0, SIZE - wide)
        kind = rng.randrange(2)
        shape = ImageDraw.Draw(image).rectangle if kind == 0 else ImageDraw.Draw(image).ellipse
        shape((x, y, x + wide, y + wide), fill=((220, 180, 40), (60, 160, 220))[kind])
        save(image, os.path.join(folder, "dataset/coco/train2017", f"{number:012}.jpg"))
        images.append({"id": number, "file_name": f"{number:012}.jpg", "width": SIZE, "height": SIZE})
        annotations.append({"id": number, "image_id": number, "category_id": kind + 1, "bbox": [x, y, wide, wide]})
    categories = [{"id": 1, "name": "box"}, {"id": 2, "name": "disc"}]
    body = {"images": images, "annotations": annotations, "categories": categories}
    write(os.path.join(folder, "dataset/coco/annotations/instances_train2017.json"), json.dumps(body))


def imagenet(folder, rng):
    """A colour for each class."""
    lines = []
    for label, (name, colour) in enumerate(COLOURS.items()):
        for number in range(COUNT // 2):
            image = background(rng)
            x, y = rng.randrange(0, 40), rng.randrange(0, 40)
            ImageDraw.Draw(image).rectangle((x, y, x + 50, y + 50), fill=colour)
            path = f"train/{name}/{name}_{number}.JPEG"
            save(image, os.path.join(folder, path))
            lines.append(f"{path} {label}\n")
    write(os.path.join(folder, "train_list.txt"), "".join(lines))


def save(image, path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    image.save(path, quality=90)


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


SETS = {"hiertext": hiertext, "icdar2015": icdar2015, "coco": coco, "imagenet": imagenet}

if __name__ == "__main__":
    SETS[sys.argv[1]](sys.argv[2], random.Random(0))  # noqa: S311 - the same pictures every time
    print(f"wrote {sys.argv[1]} to {sys.argv[2]}")

# mypy: ignore-errors
