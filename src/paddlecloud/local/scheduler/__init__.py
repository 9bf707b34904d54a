"""Placing pods on nodes: decisions on an immutable snapshot, one at a time or in gangs, each refusal explained."""
