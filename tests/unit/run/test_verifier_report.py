"""What the test script left is doubted: code under test ran beside it and may have written it."""

import json
import os

import pytest

from orchestrator.run.verify import MAX_REPORT_BYTES, TAIL_BYTES, read_report
from orchestrator.sandbox.contract import ContainerEnd
from scorers.evidence import TestResult, Verification

END = ContainerEnd(
    exit_code=0, signal=None, timed_out=False, oom_kills=0, cpu_s=0.1, max_rss_bytes=1, start=0.0, end=1.0
)


@pytest.fixture
def found(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()

    def read(**files):
        for name, content in files.items():
            (logs / name.replace("_", ".")).write_text(content, "utf-8")
        return read_report(logs, END, tmp_path)

    read.logs, read.output = logs, tmp_path
    return read


def ctrf(*tests):
    return json.dumps({"results": {"tests": list(tests)}})


def test_an_honest_report(found):
    report = found(
        reward_txt="1\n",
        ctrf_json=ctrf({"name": "a", "status": "passed"}, {"name": "b", "status": "pending", "message": "m"}),
    )
    assert report.reward == 1
    assert report.tests == [
        TestResult(name="a", status="passed"),
        TestResult(name="b", status="skipped", message="m"),
    ]


def test_the_json_reward_stands_in_for_the_text(found):
    assert found(reward_json='{"reward": 0.5}').reward == 0.5
    assert found(reward_json='{"reward": 0.5}', reward_txt="0").reward == 0


@pytest.mark.parametrize("text", ["nan", "inf", "-Infinity", "1e999", "", "one", "1 1", "\x00"])
def test_a_reward_that_is_no_finite_number_is_none(found, text):
    assert found(reward_txt=text).reward is None


@pytest.mark.parametrize(
    "text",
    ["NaN", '{"reward": NaN}', "true", '{"reward": true}', "[1]", '{"reward": [1]}', "null", "{}"]
    + ["1" + "0" * 400, "[" * 200_000, '{"reward": "x"}'],
)
def test_a_json_reward_of_another_shape_is_none(found, text):
    assert found(reward_json=text).reward is None


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"results": []}', '{"results": {"tests": {}}}', "[" * 200_000, "{", "1" * 5000]
    + [ctrf(1, None, {"name": 1, "status": "passed"}, {"name": "a", "status": []}, {"name": "a", "status": "ok"})],
)
def test_a_report_of_another_shape_counts_as_none(found, text):
    assert found(ctrf_json=text).tests == []


def test_what_is_no_regular_file_is_not_read_and_blocks_nobody(found):
    secret = found.output / "secret"
    secret.write_text("1")
    os.mkfifo(found.logs / "ctrf.json")
    (found.logs / "reward.txt").symlink_to(secret)
    (found.logs / "reward.json").mkdir()
    report = found()
    assert report.reward is None
    assert report.tests == []


def test_a_report_too_large_to_be_honest_is_not_read(found):
    padding = " " * MAX_REPORT_BYTES
    report = found(reward_txt="1" + padding, ctrf_json=ctrf({"name": "a", "status": "passed"}) + padding)
    assert report.reward is None
    assert report.tests == []


def test_names_and_messages_are_bounded_and_can_be_stored(found):
    test = {"name": "\ud800" + "n" * 10_000, "status": "failed", "message": "\udfff" + "m" * 10_000}
    [result] = found(ctrf_json=ctrf(test)).tests
    assert len(result.name) <= 500
    assert len(result.message) <= 2000
    assert Verification.model_validate_json(found().model_dump_json()).tests == [result]


def test_tails_are_the_end_of_the_output(found):
    (found.output / "stdout.log").write_bytes(b"\xff" + b"x" * TAIL_BYTES + b"end")
    report = found()
    assert report.stdout_tail.endswith("end")
    assert len(report.stdout_tail) == TAIL_BYTES
    assert report.stderr_tail == ""
