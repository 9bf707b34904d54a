"""Outside the control plane: the supervisor of a pod and the start of its containers. Imports nothing else."""
