"""Doors: the public face, one object with a synchronous and an asynchronous form of every verb."""
