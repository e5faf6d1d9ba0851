"""Measurements: `python -m bench`. One file for each question; `core` has what they share.

Every figure that depends on the machine is taken as a ratio: a plain loop over psycopg or sqlite3 (the
reference) and dibs take turns in short rounds of one run, so that a busy neighbour slows both.
"""
