"""The event API: takes events one at a time and writes them to the store in batches."""

BATCH = 40


class Intake:
    """Takes events for a store, whose `write(events)` keeps a list of them."""

    def __init__(self, store):
        self._store = store
        self._waiting = []

    def submit(self, event):
        """Take one event. Raises what the store raises; then no event is lost, and the next one tries again."""
        self._waiting.append(event)
        if len(self._waiting) >= BATCH:
            self.flush()

    def flush(self):
        """Write what has come together so far."""
        if self._waiting:
            self._store.write(self._waiting)
            self._waiting = []
