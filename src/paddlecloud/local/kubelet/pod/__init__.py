"""One pod in the control plane: what to do next, its status, probes, files and events."""
