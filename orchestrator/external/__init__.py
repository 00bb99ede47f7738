"""External benchmarks under context conditions: the same tasks, agent and harness, only what a prompt carries
of earlier work differs.
"""
