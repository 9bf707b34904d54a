"""Deployments: replacing the pods of one template by those of the next, at a pace that keeps the service up.

`decide` is the whole judgement; `revisions` finds and makes ReplicaSets, `rollout` sizes them, `status` tells.
"""
