"""External benchmarks under context conditions: the same tasks, agent and harness, only what a prompt carries
of earlier work differs.
"""

MAX_RUNS = 100
"""Of each task under each condition. Here, since the command line asks for it without what reads results."""
