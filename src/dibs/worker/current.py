"""The job a handler is running for."""


def current_job(): ...
