"""This project as an image, by the recipe that `pdc install` writes for the embedded platform."""

from __future__ import annotations

from paddlecloud.platform.own_image import NAME, write_recipe

__all__ = ["NAME", "write_recipe"]
