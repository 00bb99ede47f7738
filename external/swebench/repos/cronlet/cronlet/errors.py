"""What can go wrong."""


class CronError(ValueError):
    """An expression is no cron expression; the message names the field."""


class NeverFires(CronError):
    """An expression is well formed, and no date within reach matches it."""
