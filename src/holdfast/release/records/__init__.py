"""The one place that sees records: sources and their tabulation."""
