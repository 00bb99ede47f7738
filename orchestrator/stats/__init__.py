"""Statistics on plain numbers: nothing here knows of cells, sweeps or files.

Every interval is of 95 %, and every random part is seeded from the numbers that it is given: the same
numbers give the same answer on every machine and in every order of calls.
"""
