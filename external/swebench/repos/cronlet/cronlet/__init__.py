"""Cron expressions: when they fire, and what they say."""

from cronlet.describe import describe
from cronlet.errors import CronError, NeverFires
from cronlet.schedule import Schedule

__all__ = ["CronError", "NeverFires", "Schedule", "describe"]
