"""Versioned, content-addressed storage of models, in a folder or a bucket. Used by `pdc`, the SDK and inside pods.

docs/design/modelhub.md says what is stored where, and why a crash or a concurrent writer cannot damage a version.
"""
