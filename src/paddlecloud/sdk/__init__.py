"""The SDK: jobs, services and any other object from Python, asynchronous at the core, with blocking calls around it."""
