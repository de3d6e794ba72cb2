"""Keys that sign what is published, and whom a reader trusts."""
