"""SampleSet and SampleJob: training data that is imported once and cached on nodes."""
