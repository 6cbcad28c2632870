"""Other people's models, read into ours and written from ours."""
