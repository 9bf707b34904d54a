"""All pods or none: the PodGroup of a job, and what the scheduler reports about it."""
