"""Connections: dibs' own, and every kind a caller may bring, recognised without importing its driver."""
