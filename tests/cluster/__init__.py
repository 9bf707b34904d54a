"""Tests on a real Kubernetes, and the harness that makes one from nothing."""
