"""The routes, one file for each thing a client can ask about."""
