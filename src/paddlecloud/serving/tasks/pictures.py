"""Pictures of requests, by URL, as base64 or as they are, and what the suites make of them before their networks."""

from __future__ import annotations

import base64
import binascii
import io
import math
from typing import Any, NamedTuple

import numpy as np

from paddlecloud.serving import remote
from paddlecloud.serving.errors import BadInput, ModelError, TooLarge
from paddlecloud.serving.tasks.options import Options
from paddlecloud.serving.tensors import TensorSpec

MOST_PIXELS = 25_000_000
FORMATS = ("PNG", "JPEG", "BMP", "WEBP")
IMAGE = TensorSpec("image", "BYTES", (-1,))
SIZE = "picture-size"
"""Key of an entry, beside what the client sent: height and width of its picture."""
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Preparation(NamedTuple):
    """Resize to one size, divide by 255, subtract the mean, divide by the deviation."""

    height: int
    width: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    reverse: bool
    """Blue before green and red, as OpenCV reads pictures."""
    padded: bool = False
    """Keep the ratio of a picture that is narrower, and fill up with zeros on its right."""

    def apply(self, entry: dict[str, Any]) -> Any:
        """Three planes of a picture; notes its size in the entry."""
        if IMAGE.name not in entry:
            raise BadInput(f"feed lacks {IMAGE.name!r}: a picture by URL, or as base64")
        picture = read(entry[IMAGE.name])
        entry[SIZE] = (picture.height, picture.width)
        width = min(self.width, math.ceil(self.height * picture.width / picture.height)) if self.padded else self.width
        values = np.asarray(picture.resize((width, self.height), _bilinear()), dtype="float32") / 255
        if self.reverse:
            values = values[:, :, ::-1]
        scaled = (values - np.array(self.mean, "float32")) / np.array(self.std, "float32")
        return np.pad(scaled.transpose(2, 0, 1), ((0, 0), (0, 0), (0, self.width - width)))


def preparation(
    options: Options,
    *,
    channels: str = "RGB",
    mean: tuple[float, float, float] = IMAGENET_MEAN,
    std: tuple[float, float, float] = IMAGENET_STD,
) -> Preparation:
    import_library()
    height, width = options.size()
    other = "BGR" if channels == "RGB" else "RGB"
    reverse = options.one_of("channels", channels, other) == "BGR"
    deviation = options.three("std", std)
    if not all(deviation):
        raise ModelError("serving.yaml: processing.std: none of its numbers may be 0")
    return Preparation(height, width, options.three("mean", mean), deviation, reverse)


def read(sent: Any) -> Any:
    """A picture of Pillow, in RGB. Raises `BadInput`."""
    image = import_library()
    content = _content(sent)
    try:
        with image.open(io.BytesIO(content), formats=FORMATS) as picture:
            if picture.width * picture.height > MOST_PIXELS:
                raise TooLarge(f"the picture has {picture.width} x {picture.height} pixels; {MOST_PIXELS} are allowed")
            return picture.convert("RGB")
    except BadInput:
        raise
    except (OSError, ValueError, SyntaxError, image.DecompressionBombError) as error:
        raise BadInput(f"it is no picture of {', '.join(FORMATS)} that can be read: {str(error)[:200]}") from None


def _content(sent: Any) -> bytes:
    if isinstance(sent, bytes):
        if (text := _text(sent)) is None:
            return sent
        sent = text
    if not isinstance(sent, str):
        raise BadInput(f"a picture is a URL or base64, not {type(sent).__name__}")
    if sent.startswith(("http://", "https://", "data:")):
        return remote.fetch(sent)
    try:
        content = base64.b64decode(sent, validate=True)
    except (binascii.Error, ValueError):
        raise BadInput(f"{sent[:40]!r} is neither a URL (http, https, data) nor base64 of a picture") from None
    if len(content) > remote.LARGEST:
        raise TooLarge(f"the picture has more than {remote.LARGEST} bytes")
    return content


def _text(sent: bytes) -> str | None:
    """Tensors of the Open Inference Protocol carry texts and files alike."""
    try:
        return sent.decode("ascii")
    except UnicodeDecodeError:
        return None


def import_library() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise ModelError(f"processing of pictures needs pillow, which is not installed here ({error})") from error
    return Image


def _bilinear() -> Any:
    return import_library().Resampling.BILINEAR
