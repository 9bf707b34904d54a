"""The verbs on stored objects: create, get, list, watch, patch, apply, delete."""
