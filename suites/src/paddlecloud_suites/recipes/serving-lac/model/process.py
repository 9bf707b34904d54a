"""Text becomes characters, and the marks of the network become words: `我|爱|北京|天安门`."""

from pathlib import Path

CHARACTERS = Path(__file__).with_name("characters.txt").read_text()
INDEX = {character: number for number, character in enumerate(CHARACTERS, start=2)}
UNKNOWN = 1
SINGLE, END = 0, 3
LONGEST = 512


class Words:
    def preprocess(self, inputs):
        text = inputs["words"]
        if not isinstance(text, str) or not 0 < len(text) <= LONGEST:
            raise ValueError(f"words must be a text of 1 to {LONGEST} characters")
        # One length for all texts: they may become one batch. What pads them is dropped below.
        return {"words": [INDEX.get(character, UNKNOWN) for character in text] + [0] * (LONGEST - len(text))}

    def postprocess(self, outputs, inputs):
        return [
            {"word_seg": "|".join(cut(entry["words"], marks.argmax(-1)))}
            for entry, marks in zip(inputs, outputs["marks"], strict=True)
        ]


def cut(text, marks):
    words, word = [], ""
    for character, mark in zip(text, marks):  # noqa: B905 - there are more marks than characters
        word += character
        if mark in (SINGLE, END):
            words.append(word)
            word = ""
    return [*words, word] if word else words


# mypy: ignore-errors
