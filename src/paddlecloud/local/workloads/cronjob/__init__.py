"""CronJobs: a Job each time a schedule is due.

As the CronJob controller of Kubernetes (pkg/controller/cronjob, cronjob_controllerv2.go): of the times missed while it
was not running, or while an earlier Job had to end first, only the latest is run. The name of a Job is derived from its
time, so no crash can make one twice.
"""
