"""What clients send and get, as pydantic models: they check bodies and describe the service in OpenAPI."""
