"""Exit codes of programs that a signal ended."""

from __future__ import annotations

import signal

import pytest

from paddlecloud.api.signals import signal_text, with_signal


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (139, "segmentation fault (SIGSEGV)"),
        (135, "bus error (SIGBUS)"),
        (132, "illegal instruction (SIGILL)"),
        (143, "terminated (SIGTERM)"),
        (0, ""),
        (1, ""),
        (128, ""),
        (255, ""),
        (None, ""),
    ],
)
def test_codes_above_128_name_their_signal(code: int | None, text: str) -> None:
    assert signal_text(code) == text


def test_names_are_those_of_this_machine() -> None:
    for number in signal.valid_signals():
        if text := signal_text(128 + int(number)):
            assert text.endswith(f"({signal.Signals(number).name})")


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("", "segmentation fault (SIGSEGV)"),
        ("epoch 3", "segmentation fault (SIGSEGV): epoch 3"),
        ("Fatal Python error: Segmentation fault", "Fatal Python error: Segmentation fault"),
        ("caught SIGSEGV", "caught SIGSEGV"),
    ],
)
def test_what_the_program_said_follows_unless_it_says_the_same(said: str, text: str) -> None:
    assert with_signal(139, said) == text
