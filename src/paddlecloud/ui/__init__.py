"""The dashboard: pages in a browser that say what runs, why it waits and what is served (docs/design/dashboard.md).

Objects come from one watch for each kind, shared by all pages; who sees what is asked of the API server with the
credentials of the viewer, and every action runs with them.
"""
