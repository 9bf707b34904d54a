"""The cache runtime: a server beside every partition of a SampleSet that copies, warms, clears and counts."""
