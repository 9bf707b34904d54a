"""The pods of nodes: how one is made of its template, what its state says of its node, how it starts the executor."""
