"""A stored cell as its page shows it: each module makes plain values of one part of the evidence.

What an agent, an endpoint or a test wrote is hostile. Every text passes `bounded`, which keeps it harmless
and short; templates escape it, and nothing here makes markup but `diff.py`, of escaped text.
"""
