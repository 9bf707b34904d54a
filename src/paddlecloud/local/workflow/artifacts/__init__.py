"""Artifacts of workflows: where each is stored, the built-in repository, and how pods and users reach it."""
