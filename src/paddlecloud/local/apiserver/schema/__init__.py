"""Structural schemas at work: pruning, defaults, validation, CEL rules, ratcheting."""
