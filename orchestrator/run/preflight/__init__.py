"""Preflight: one tiny handshake for each CLI with each model, before a sweep spends money.

The handshake is a cell in miniature (`handshake.py`): the same container, adapter, gateway and PID 1, with
the task in `hello/`, which asks for one edit of one file. It is judged by that file alone (`verdict.py`): no
verifier runs. `pairs.py` says which pairs need one and what is known, `check.py` makes those of a sweep.
"""
