"""Subresources that are conversations: logs, exec, attach and port-forward of pods, in the protocols kubectl speaks."""
