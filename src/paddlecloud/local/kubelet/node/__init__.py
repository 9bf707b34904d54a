"""The kubelet of a node and what its pods share: addresses, devices, limits, the zygote, usage."""
