"""The files of released tables: one of each kind, or parts; and what every column in them is."""
