"""Who asks, whether they may, and the record of it: tokens, RBAC, reviews, the audit log."""
