"""What clients send and get, as types."""
