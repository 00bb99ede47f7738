"""cab: measures coding-agent CLIs. See docs/architecture.md for the map of this package."""

__version__ = "0.1.0"
