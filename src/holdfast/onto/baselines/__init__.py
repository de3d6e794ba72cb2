"""TopDown and BlueDown: level by level, when they are asked for by name."""
