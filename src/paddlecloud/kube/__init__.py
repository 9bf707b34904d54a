"""Everything needed to talk to a Kubernetes API and to build controllers on it, from the bottom up:

transport · http · stdlib      how bytes get there; config, credentials: where and as whom
client · discovery             verbs on plain dicts; what a server serves
cache · informer               the newest state of a collection, and what changed
queue · controller             changes become runs of a reconcile function
plan · expectations · events   what a run asks for, carried out once
lease · fence                  one leader, and nobody else writes
manager · metrics · metered · logs    a process made of these
quantity · selectors · resource · errors · clock    what they share

`server` has what this project's HTTP servers share, `templates` Go's templates and JSONPath.

Importing the package itself imports none of them.
"""
