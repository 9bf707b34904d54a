"""The gateway: several processes on one port that carry HTTP/1.1 from clients to the pods of revisions.

A process of it imports nothing but the standard library and this package, so that it starts quickly and stays small.
"""
