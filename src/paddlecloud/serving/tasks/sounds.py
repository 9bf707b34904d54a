"""Classification of sounds, as PaddleSpeech trains PANNs: energies of mel bands, then the likeliest label."""

from __future__ import annotations

import base64
import binascii
import io
import wave
from typing import Any

import numpy as np

from paddlecloud.serving import remote
from paddlecloud.serving.errors import BadInput
from paddlecloud.serving.tasks import scores
from paddlecloud.serving.tasks.options import Options
from paddlecloud.serving.tensors import Feeds, TensorSpec

SOUND = TensorSpec("sound", "BYTES", (-1,))
LEAST_POWER = 1e-10


class Sounds:
    inputs = (SOUND,)
    outputs = (scores.LABEL, scores.PROBABILITY)

    def __init__(self, options: Options) -> None:
        self._rate = options.whole("sampleRate", 16_000, 1000, 192_000)
        self._seconds = options.number("seconds", 1.0, 0.1, 60)
        self._points = options.whole("window", 512, 64, 8192)
        self._step = options.whole("step", 320, 16, 8192)
        bands = options.whole("bands", 64, 8, 256)
        low, high = options.number("lowest", 50, 0, 96_000), options.number("highest", 8000, 1, 96_000)
        self._filters = mel_filters(self._rate, self._points, bands, low, high)
        self._labels = scores.labels(options)

    def bind(self, inputs: tuple[TensorSpec, ...], outputs: tuple[TensorSpec, ...]) -> None:
        self._input, self._output = scores.only(inputs, "input", "sound-clas").name, outputs[0].name

    def preprocess(self, inputs: dict[str, Any]) -> dict[str, Any]:
        if SOUND.name not in inputs:
            raise BadInput(f"feed lacks {SOUND.name!r}: a WAV file by URL, or as base64")
        samples = self._samples(inputs[SOUND.name])
        return {self._input: self._energies(samples)}

    def postprocess(self, outputs: Feeds, inputs: list[dict[str, Any]]) -> dict[str, list[Any]]:
        return scores.best(outputs, self._output, self._labels)

    def _samples(self, sent: Any) -> Any:
        """From -1 to 1, the loudest at the edge, as long as the network was trained with."""
        try:
            with wave.open(io.BytesIO(_content(sent))) as file:
                channels, width, rate = file.getnchannels(), file.getsampwidth(), file.getframerate()
                raw = file.readframes(int(rate * self._seconds) + 1)
        except (wave.Error, EOFError) as error:
            raise BadInput(f"it is no WAV file that can be read: {error}") from None
        if width != 2 or rate != self._rate:
            raise BadInput(f"the WAV file has {rate} Hz and {8 * width} bits; expected are {self._rate} Hz and 16 bits")
        whole = len(raw) // (2 * channels) * 2 * channels
        values = np.frombuffer(raw[:whole], "<i2").reshape(-1, channels).mean(1) / 32768
        wanted = np.zeros(int(self._rate * self._seconds))
        wanted[: len(values)] = values[: len(wanted)]
        return wanted / (abs(wanted).max() + np.finfo("float32").eps)

    def _energies(self, samples: Any) -> Any:
        """In decibels, a row for each step."""
        half = self._points // 2
        padded = np.pad(samples, half, mode="reflect")
        frames = np.lib.stride_tricks.sliding_window_view(padded, self._points)[:: self._step]
        hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(self._points) / self._points)
        power = abs(np.fft.rfft(frames * hann, axis=1)) ** 2
        return (10 * np.log10(np.maximum(power @ self._filters.T, LEAST_POWER))).astype("float32")


def mel_filters(rate: int, points: int, bands: int, low: float, high: float) -> Any:
    """Triangles on Slaney's scale, each with the same area, as librosa makes them unless another scale is asked for."""
    places = _from_mel(np.linspace(_to_mel(low), _to_mel(min(high, rate / 2)), bands + 2))
    frequencies = np.fft.rfftfreq(points, 1 / rate)
    rising = (frequencies - places[:-2, None]) / np.diff(places)[:-1, None]
    falling = (places[2:, None] - frequencies) / np.diff(places)[1:, None]
    return np.maximum(0, np.minimum(rising, falling)) * (2 / (places[2:] - places[:-2]))[:, None]


_LINEAR, _BORDER, _LOG = 200 / 3, 1000.0, np.log(6.4) / 27
"""Slaney's scale: linear below 1,000 Hz, logarithmic above."""


def _to_mel(hertz: float) -> float:
    if hertz < _BORDER:
        return hertz / _LINEAR
    return float(_BORDER / _LINEAR + np.log(hertz / _BORDER) / _LOG)


def _from_mel(mels: Any) -> Any:
    border = _BORDER / _LINEAR
    return np.where(mels < border, mels * _LINEAR, _BORDER * np.exp(_LOG * (mels - border)))


def _content(sent: Any) -> bytes:
    if isinstance(sent, bytes) and sent[:4] == b"RIFF":
        return sent
    text = sent.decode("ascii", errors="replace") if isinstance(sent, bytes) else sent
    if not isinstance(text, str):
        raise BadInput(f"a sound is a URL or base64, not {type(sent).__name__}")
    if text.startswith(("http://", "https://", "data:")):
        return remote.fetch(text)
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise BadInput(f"{text[:40]!r} is neither a URL (http, https, data) nor base64 of a WAV file") from None
