"""The rules of the integrity axis. Each is a pure function that yields findings."""
