"""Argo Workflows on one machine: `argoproj.io/v1alpha1` as Argo itself writes it, carried out with plain pods."""
