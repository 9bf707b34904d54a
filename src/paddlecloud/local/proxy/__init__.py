"""ClusterIP services on one machine: a TCP proxy on each service's own loopback address, in the platform's process."""
