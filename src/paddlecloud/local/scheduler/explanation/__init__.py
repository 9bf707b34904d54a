"""Why a pod or gang waits, and which change would let it start."""
