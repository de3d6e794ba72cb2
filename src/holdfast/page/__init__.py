"""The planner in a browser, on this machine only: what a spec would promise and how wrong it would be."""
