"""A real Kubernetes on one machine, built from source and gone without a trace: `python -m cluster.harness up`.

Read in this order to see how a cluster is made: `layout` (addresses and paths), `engines` (the programs), `machine`
(namespaces that behave like a computer), `control` and `node` (what runs on each), `cluster` (the order of it all).
"""
