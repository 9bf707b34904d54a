"""Recipes of the images that PaddlePaddle's manuals name; `paddlecloud.local.images` finds them. Nothing to import."""

__version__ = "0.1.0"  # that of paddlecloud
