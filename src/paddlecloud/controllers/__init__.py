"""One package per kind: a pure `decide` over what was asked for and what is observed, and a thin edge that acts on it.

Controllers use the public Kubernetes API and nothing else, so they cannot tell a cluster from the embedded platform.
"""
