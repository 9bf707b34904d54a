"""Differential authorisation: generated roles and requests, judged by the embedded API server and by a real one.

`generator` makes worlds (roles, bindings, requests) from a seed; `stage` puts them on a server and takes them away;
`judge` sends the requests; `shrink` reduces a request that two servers judge differently to one line; `recorded` keeps
the verdicts of a real server, for machines without one. kube-apiserver's verdict is right by definition.
"""
