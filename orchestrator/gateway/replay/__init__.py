"""Recorded answers instead of an endpoint: the requests have to be the recorded ones, and the first that is
not is shown.
"""

from orchestrator.gateway.replay.source import ReplayedModel, load_recording

__all__ = ["ReplayedModel", "load_recording"]
