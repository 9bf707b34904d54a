"""The embedded platform as a process of a user: where its data lies, what runs in it, how a running one is found."""
