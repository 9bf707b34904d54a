"""What is to be done for a PaddleJob: pure functions from a job and what was observed to a plan."""
