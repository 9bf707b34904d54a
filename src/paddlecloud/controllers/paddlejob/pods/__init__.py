"""The objects a PaddleJob creates: pods, their environment, ports, hosts files and data volumes."""
