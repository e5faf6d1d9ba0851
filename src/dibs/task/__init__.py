"""Tasks: functions that can be enqueued, and found again by name."""
