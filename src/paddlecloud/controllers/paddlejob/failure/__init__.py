"""Why pods failed, which failure caused the others, and what the job's policy does about it."""
