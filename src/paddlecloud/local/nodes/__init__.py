"""Nodes beyond the machine itself: virtual ones that share it, simulated ones that run nothing, and their loss."""
