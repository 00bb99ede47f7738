"""Commands without an engine: in the container that cab itself runs in, or on the machine. `sandbox.py`."""
