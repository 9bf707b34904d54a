"""metrics.k8s.io for `kubectl top`: what pods and nodes use now, measured when somebody asks."""
