"""The roles that pods of a PaddleJob have."""

from __future__ import annotations

ROLES = ("ps", "worker", "heter")
"""In the order in which they start."""
