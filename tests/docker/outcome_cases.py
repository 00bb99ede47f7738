"""The cases of test_outcomes.py: what a program of the agent does, what its endpoint answers, and what has to
come of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from cells import (
    CALL_RETRIES,
    NO_IMPORT,
    NO_REWARD,
    SHORT,
    TASK,
    TOKENS_IN,
    TOKENS_OUT,
    TWO_CALLS,
    Answer,
    Answers,
    completion,
    refusal,
)

STATED_WAIT_S = 4
RETRIES = 1
CALL = TOKENS_IN + TOKENS_OUT
CALLS = 1 + CALL_RETRIES


def answers(number: int) -> Answer:
    return Answer()


def always(answer: Answer) -> Answers:
    return lambda _: answer


def first(count: int, answer: Answer, *, after: int = 0) -> Answers:
    """`answer` to `count` requests behind the first `after`, and what is asked for to all others."""
    return lambda number: answer if after < number <= after + count else Answer()


@dataclass(frozen=True)
class Case:
    """`tries` of the cell, requests `asked` of the endpoint in all of them, `tokens` of the last try."""

    outcome: str
    text: str
    asked: int
    answers: Answers = answers
    endpoint: str = "stub"
    task: str = TASK
    tty: bool = True
    render: Callable[[str], str] | None = None
    passed: int | None = 0
    reason: str = "tests_failed"
    detail: str = ""
    tries: int = 1
    tokens: int | None = CALL
    earlier: tuple[int | None, ...] = ()

    @property
    def counted(self) -> bool:
        return not self.outcome.startswith(("infra_error", "verify_error"))


def infra(
    cause: str,
    asked: int,
    answers: Answers,
    *,
    text: str = "fix(); ask()",
    tokens: int | None = 0,
    endpoint: str = "stub",
) -> Case:
    """A fault of the endpoint: tried again, then left uncounted."""
    return Case(
        f"infra_error({cause})",
        text,
        asked=asked,
        answers=answers,
        endpoint=endpoint,
        passed=None,
        reason="not_verified",
        tries=1 + RETRIES,
        tokens=tokens,
        earlier=(tokens,) * RETRIES,
    )


HOSTILE = """
ask()
os.symlink("/etc/shadow", "shadow")
os.symlink("/", "root")
os.mkfifo("pipe")
with open("huge", "wb") as file:
    file.truncate(1 << 40)
for name in (b"new\\nline.txt", b"bad\\xff\\xfe.txt", b"tab\\t\\"quote\\".txt"):
    with open(name, "w") as file:
        file.write("x")
for _ in range(24):
    sys.stdout.write("\\x1b[31m" + "x" * (1 << 20))
sys.stdout.flush()
if os.fork() == 0:
    os.setsid()
    while True:
        with open("tick.new", "w") as file:
            file.write(repr(time.time()))
        os.rename("tick.new", "tick.txt")
while not os.path.exists("tick.txt"):
    pass
"""

IGNORES_REFUSALS = """
while True:
    try:
        ask()
    except OSError:
        time.sleep(0.2)
"""

FILLS_ITS_DISK = """
ask(); fix()
try:
    for number in range(6000):
        open("a" + str(number), "w").close()
except OSError:
    pass
try:
    with open("a0", "wb") as file:
        for _ in range(160):
            file.write(bytes(1 << 20))
except OSError:
    pass
"""

SAYS_EVENTS = """
def say(**event):
    print(json.dumps(event), flush=True)

say(text="I will fix it.\\n")
ask(); fix()
time.sleep(1)
say(text="\\x1b[2JFixed.\\n")
print("goodbye", flush=True)
"""


def render(line: str) -> str:
    return f"\x1b[36m{json.loads(line)['text']}\x1b[0m"


CASES = {
    "passes": Case("completed", "ask(); fix()", asked=1, passed=1, reason="passed"),
    "fails": Case("completed", "ask()", asked=1),
    "usage-unstated": Case(
        "completed",
        "ask(); fix()",
        asked=1,
        answers=always(Answer(body=completion(usage=False))),
        passed=1,
        reason="passed",
        tokens=None,
    ),
    "timed-out": Case(
        "timed_out", "ask(); fix(); time.sleep(600)", asked=1, task=SHORT, passed=1, reason="passed"
    ),
    "limit": Case("limit_reached(calls)", "while True: ask()", asked=2, task=TWO_CALLS, tokens=2 * CALL),
    "limit-ignored": Case(
        "limit_reached(calls)",
        IGNORES_REFUSALS,
        asked=2,
        task=TWO_CALLS,
        tokens=2 * CALL,
        detail="cab ended it",
    ),
    "exit-code": Case(
        "agent_crashed", "ask(); fix(); sys.exit(3)", asked=1, passed=1, reason="passed", detail="exit code 3"
    ),
    "signal": Case(
        "agent_crashed", "ask(); os.kill(os.getpid(), signal.SIGSEGV)", asked=1, detail="signal 11"
    ),
    "oom": Case("agent_oom", 'ask(); b"x" * (1 << 30)', asked=1),
    "overflow": Case(
        "context_overflow",
        "ask()",
        asked=1,
        answers=always(refusal(400, "context_length_exceeded")),
        tokens=0,
    ),
    "bad-request": Case("bad_request", "ask()", asked=1, answers=always(refusal(422)), tokens=0),
    "unauthorised": Case("bad_request", 'ask("not-the-credential")', asked=0, tokens=0),
    "overcome": Case(
        "completed",
        "ask(); fix()",
        asked=2,
        answers=first(1, refusal(503)),
        passed=1,
        reason="passed",
    ),
    "waits": Case(
        "completed",
        "ask(); fix()",
        asked=2,
        answers=first(1, refusal(429, retry_after=str(STATED_WAIT_S))),
        task=SHORT,
        passed=1,
        reason="passed",
    ),
    "second-try": Case(
        "completed",
        "ask(); ask(); fix()",
        asked=1 + CALLS + 2,
        answers=first(CALLS, refusal(503), after=1),
        passed=1,
        reason="passed",
        tries=2,
        tokens=2 * CALL,
        earlier=(CALL,),
    ),
    "rate-limited": infra("rate_limited", 2 * CALLS, always(refusal(429))),
    "down": infra("endpoint_down", 0, answers, endpoint="down"),
    "5xx": infra("upstream_5xx", 2 * CALLS, always(refusal(503))),
    "cut": infra("stream_cut", 2, always(Answer(cut=True)), tokens=None),
    "key-refused": infra("key_refused", 2, always(refusal(401))),
    # The container goes in the middle of the second call, whose usage nobody knows.
    "engine": infra("engine", 4, answers, text="fix(); ask(); ask()", tokens=None),
    "verify-error": Case(
        "verify_error",
        "ask(); fix()",
        asked=2,
        task=NO_REWARD,
        passed=None,
        reason="verify_error",
        tries=1 + RETRIES,
        earlier=(CALL,),
    ),
    "syntax-error": Case(
        "completed", 'ask(); write("def reverse_string(:\\n")', asked=1, reason="build_broken"
    ),
    "suite-stops": Case(
        "completed", 'ask(); write("raise SystemExit\\n")', asked=1, task=NO_IMPORT, reason="build_broken"
    ),
    "hostile": Case("completed", HOSTILE, asked=1, tty=False),
    "rendered": Case("completed", SAYS_EVENTS, asked=1, tty=False, render=render, passed=1, reason="passed"),
    "disk-full": Case("completed", FILLS_ITS_DISK, asked=1, passed=1, reason="passed"),
}
