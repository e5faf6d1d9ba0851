"""References: plain loops over a driver, as fast as a durable queue of their shape goes. No history, no retries."""
