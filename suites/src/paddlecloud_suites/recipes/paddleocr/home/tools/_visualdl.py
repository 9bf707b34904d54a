"""Records for VisualDL with `Global.use_visualdl=True`, which PaddleOCR 2.10 itself no longer writes."""

import os

from visualdl import LogWriter


class VisualDL:
    """What PaddleOCR's training calls a logger."""

    def __init__(self, folder):
        self.writer = LogWriter(logdir=os.path.join(folder, "vdl"))

    def log_metrics(self, metrics, prefix=None, step=None):
        for name, value in metrics.items():
            self.writer.add_scalar(f"{prefix}/{name}", float(value), step)

    def log_model(self, is_best, prefix, metadata=None):
        """Checkpoints are files; there is nothing to record."""

    def close(self):
        self.writer.close()


# mypy: ignore-errors
