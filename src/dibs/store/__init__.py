"""Rows: how words are kept. Operations (what can happen to a job), the statements they send, and the databases."""
