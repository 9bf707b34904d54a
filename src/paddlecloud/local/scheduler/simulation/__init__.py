"""The scheduler on recorded or generated loads, without a cluster."""
