"""Subresources that are streams: logs, exec, attach and port-forward of pods, in the protocols that kubectl uses."""
