"""What was spent, for whom, and under which unit."""
