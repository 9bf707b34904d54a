"""The twelve pipeline components of the manual: what they take and give, and the YAML files made from that.

`operator/` and `launcher/` hold the files under their original names. `make rendered` writes them, together
with the typed functions of `paddlecloud.pipelines` and the tables of the docs, so that none of them can differ from the
flags that the launchers parse. Nothing here connects to a cluster (`paddlecloud.pipelines.launchers` does).
"""
