"""One pass over a workflow as pure functions: which steps begin, which are repeated or over, what is written of it."""
