"""Tenants: Profiles of Kubeflow, carried out where there is no Kubeflow (docs/design/tenants.md)."""

from paddlecloud.controllers.tenant.controller import TenantController, served_kinds
from paddlecloud.controllers.tenant.objects import TenantSettings

__all__ = ["TenantController", "TenantSettings", "served_kinds"]
