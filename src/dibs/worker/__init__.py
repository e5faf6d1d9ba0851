"""Hands: the one runtime that runs jobs."""
