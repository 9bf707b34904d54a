"""What the scheduler knows: nodes, pods, gangs and queues, as snapshots and between rounds."""
