"""The programs of the components: `python -m paddlecloud.pipelines.launchers NAME --flag value …`.

A launcher creates objects, waits for them on a watch, and copies the log of their pods into its own. When its run is
stopped or its time is over it deletes what it started. A launcher that starts again in the same run, because its pod
was lost, continues with the objects of its predecessor. It uses public APIs alone, with the rights of its pod's
account.
"""
