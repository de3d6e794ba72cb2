"""The kinds of tables, one file each; shared is how their public domain is read."""
