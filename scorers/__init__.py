"""Independent scorers: pure functions from (task, evidence) to numbers, one module per axis.

The same input gives the same bytes. Nothing here reads a clock, a file or the network, or imports what runs
cells. `scorers.score` scores a cell on all axes, `scorers.evidence` is all that a scorer sees.
"""

METHODOLOGY_VERSION = "1"
