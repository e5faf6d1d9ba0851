"""Chaos: real processes are killed, stopped and cut off from their database, and a checker says whether dibs held.

`python -m chaos` runs it; docs/reliability.md says what is checked and what came out.
"""
