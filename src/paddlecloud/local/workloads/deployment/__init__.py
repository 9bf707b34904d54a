"""Deployments: replacing the pods of one template by those of the next, at a pace that keeps the service up.

`decide` is the whole decision; `revisions` finds and creates ReplicaSets, `rollout` sizes them.
"""
