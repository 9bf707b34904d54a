"""What runs in the hub's pod: the parts that JupyterHub and KubeSpawner are extended by. They import both."""
