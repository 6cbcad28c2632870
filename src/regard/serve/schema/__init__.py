"""What clients send and get, as types: FastAPI checks by them, and OpenAPI describes them."""
