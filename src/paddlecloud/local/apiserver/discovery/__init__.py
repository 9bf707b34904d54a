"""Which groups, versions and kinds are served, and their OpenAPI documents."""
