"""PaddleCloud: PaddlePaddle end to end on Kubernetes, and on one machine that speaks the same API."""

__version__ = "0.1.0"
