"""Figures of the event API beside those of the last release. Ends with 1 when it is no faster."""

import sys

from src.intake import Intake

EVENTS = 10_000
WRITE_MS = 40
LAST_RELEASE = {"further events until one is stored, at most": 19, "ms that a submit takes, on average": 2.0}


class Store:
    """Remembers for each event how many had been submitted when it was written."""

    def __init__(self):
        self.submitted = 0
        self.writes = 0
        self.longest = 0

    def write(self, events):
        self.writes += 1
        self.longest = max(self.longest, self.submitted - min(events))


def figures():
    store = Store()
    intake = Intake(store)
    for number in range(EVENTS):
        store.submitted = number
        intake.submit(number)
    intake.flush()
    return dict(zip(LAST_RELEASE, (store.longest, store.writes * WRITE_MS / EVENTS)))


def main():
    now = figures()
    print(f"{'':45} {'last':>6} {'now':>6}")
    for name, last in LAST_RELEASE.items():
        print(f"{name:45} {last:6} {now[name]:6}")
    faster = [name for name, last in LAST_RELEASE.items() if now[name] < last]
    print("faster" if faster else "no faster than the last release")
    return 0 if faster else 1


if __name__ == "__main__":
    sys.exit(main())
