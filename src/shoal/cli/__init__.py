"""The command ``shoal``: one file a command."""
