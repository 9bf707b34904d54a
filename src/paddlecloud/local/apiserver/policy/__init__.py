"""Admission by the rules of a namespace: quotas, LimitRanges, service accounts."""
