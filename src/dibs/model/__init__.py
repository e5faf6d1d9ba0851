"""Words: the values dibs speaks in and the decisions it takes, free of databases, threads and clocks."""
