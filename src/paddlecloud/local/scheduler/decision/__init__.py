"""One scheduling round as pure functions: filters, scores, gangs, queues, preemption."""
