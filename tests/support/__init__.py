"""What tests stand on: databases, callers' connections, a clock, and checks that nothing is left behind."""
