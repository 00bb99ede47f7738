"""Why there is no verdict, no tests, or no answer."""


class UnusableError(Exception):
    """The call or the tests are wrong: no verdict on the code under test."""


class BrokenError(Exception):
    """The code under test cannot be compiled or loaded; says why."""


class NoAnswerError(Exception):
    """The process that has the code under test did not answer; says what it did instead."""
