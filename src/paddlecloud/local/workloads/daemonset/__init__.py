"""DaemonSets: one pod on each node that the template fits.

As the DaemonSet controller of Kubernetes (pkg/controller/daemon): pods are bound to their nodes by a node affinity on
the node's name, which the scheduler obeys, and tolerate what a node may suffer from for a while.
"""
