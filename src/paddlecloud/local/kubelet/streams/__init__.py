"""Logs, exec, attach and port-forward of a pod."""
