"""What the questions share: servers, processes, clocks, pairing, results and their printing."""
