"""The embedded platform: an API server, a scheduler, a kubelet and the controllers that every cluster has."""
