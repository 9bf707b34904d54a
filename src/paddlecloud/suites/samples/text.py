"""PaddleNLP: `train.tsv` and `dev.tsv` of `TEXT<tab>CLASS`, with a vocabulary of their own: nothing is downloaded."""

from __future__ import annotations

from pathlib import Path
from random import Random

LABELS = ("negative", "positive")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = (
    ("bad", "awful", "sad", "poor", "angry", "hate"),
    ("good", "great", "nice", "fine", "happy", "love"),
)
OTHERS = ("the", "a", "movie", "was", "day", "food", "it", "i", "we", "very")


def write(folder: Path, split: str, count: int, random: Random) -> None:
    name = {"train": "train", "eval": "dev"}[split]
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for number in range(count):
        label = number % len(LABELS)
        words = random.choices(OTHERS, k=6) + random.choices(WORDS[label], k=2)
        random.shuffle(words)
        lines.append(f"{' '.join(words)}\t{label}\n")
    (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
    vocabulary = (*SPECIAL, *WORDS[1], *WORDS[0], *OTHERS)
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in vocabulary), encoding="utf-8")
    (folder / "labels.txt").write_text("".join(f"{label}\n" for label in LABELS), encoding="utf-8")
