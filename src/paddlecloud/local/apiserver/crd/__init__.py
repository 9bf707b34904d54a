"""CustomResourceDefinitions: which are accepted, and which kinds they add."""
