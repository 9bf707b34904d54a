"""CronWorkflows: a Workflow each time a schedule is due.

As Argo's cron controller (`workflow/cron/operator.go`). When a schedule is due is `kube.timetable`'s business, as for
CronJobs. The name of a Workflow is derived from its time, so no crash can make one twice.
"""
