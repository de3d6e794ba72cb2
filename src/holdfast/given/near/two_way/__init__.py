"""Two-way tables with exact margins, row after row."""
