"""The trainer: it sees a `Task` and nothing of what the task is about."""
