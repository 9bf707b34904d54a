"""VisualDL: the server that shows the curves of a job, where its records lie, and the records themselves."""
