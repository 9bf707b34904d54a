"""JupyterHub for tenants (docs/design/notebooks.md): who may start a notebook where, how people sign in on one machine,
and the configuration of hub, spawner, culler and proxy. `hub` runs inside the hub's pod; the rest is pure.
"""
