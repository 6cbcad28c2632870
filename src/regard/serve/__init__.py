"""The service: one thread owns each model, requests wait in bounded queues, and nothing a client sends is trusted."""
