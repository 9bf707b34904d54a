"""Volumes of pods: from what a pod or claim asks for to folders and mounts of this machine."""
