"""Jobs: pods that run until enough of them have succeeded, or too many have failed.

Outcomes are counted on the pods themselves, which stay until their Job goes; the status remembers the highest count and
the completed indexes, so that what was done once is not forgotten with a pod. (Kubernetes holds each pod by a finalizer
until it is counted; here deleting a succeeded pod of an unfinished Job without indexes means: do it again.)
"""
