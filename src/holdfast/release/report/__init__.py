"""The report: one page for whoever must sign, read or use a release; it works offline and loads nothing."""
