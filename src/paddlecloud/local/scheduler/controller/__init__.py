"""The scheduler's side effects: watches in, bindings, statuses and events out."""
