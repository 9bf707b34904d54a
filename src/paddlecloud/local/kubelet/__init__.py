"""The kubelet: pods as processes of this machine, each supervised by a shim."""
