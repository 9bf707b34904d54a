"""The image of the launchers: one for all, of this release."""

from __future__ import annotations

from paddlecloud import __version__

IMAGE = f"paddlecloud/pipeline:{__version__}"
