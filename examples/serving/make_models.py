"""Trains the models of the serving images again and writes them where the recipes have them.

    python examples/serving/make_models.py RECIPES          # with Paddle 3.3
    python examples/serving/make_models.py RECIPES legacy   # with Paddle 2.6: the model in its older form

RECIPES is suites/src/paddlecloud_suites/recipes. Prints the accuracy each model reached.
"""

import sys
import tarfile
import tempfile
from pathlib import Path

import clicks
import numpy as np


def current(recipes):
    import flowers
    import sentences
    import words
    from PIL import Image

    folder = recipes / "serving-resnet" / "model"
    print("flowers", flowers.export(folder))
    picture = (flowers.draw("daisy", np.random.RandomState(2), side=160) * 255).astype("uint8")
    Image.fromarray(picture).save(folder / "daisy.jpg", quality=85)
    print("words", words.export(recipes / "serving-lac" / "model"))
    print("sentences", sentences.export(recipes / "serving-bert" / "model"))
    names = [f"embedding_{number}.tmp_0" for number in range(clicks.CATEGORIES)]
    print("clicks", clicks.export(recipes / "serving-criteoctr" / "model", names=names))


def legacy(recipes):
    with tempfile.TemporaryDirectory() as folder:
        print("clicks", clicks.export(f"{folder}/wide-deep", stem="rec_inference"))
        with tarfile.open(recipes / "serving-toolbox" / "wide-deep.tar.gz", "w:gz") as tar:
            for path in sorted(Path(folder).glob("wide-deep/*.pd*")):
                if path.suffix in (".pdmodel", ".pdiparams"):
                    tar.add(path, f"wide-deep/{path.name}")


if __name__ == "__main__":
    {"current": current, "legacy": legacy}[sys.argv[2] if len(sys.argv) > 2 else "current"](Path(sys.argv[1]))


# mypy: ignore-errors
