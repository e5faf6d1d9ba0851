"""Hands: the one runtime that runs jobs."""

from dibs.worker.worker import Worker

__all__ = ["Worker"]
