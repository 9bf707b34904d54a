"""Models and ModelVersions: deletion with the files' manifest, retention, and what was lost or never registered."""

from paddlecloud.controllers.model.controller import ModelController
from paddlecloud.controllers.model.stored import ModelStore

__all__ = ["ModelController", "ModelStore"]
