"""Looking inside: replay a finished output with recording on, and read what was recorded."""
