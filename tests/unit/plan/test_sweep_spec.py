from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import InputError
from orchestrator.plan.runs import adaptive, fewest, most
from orchestrator.plan.spec import LimitSpec, SweepSpec, load_spec, sweep_id

FREE = Path(__file__).parents[3] / "sweeps" / "free.yaml"
GOOD = """\
name: free
clis: [opencode, noop]
models:
  - embedded/reference
  - {id: openai/gpt-oss-120b, endpoint: hosted}
endpoints:
  hosted: {base_url: {env: CAB_ENDPOINT}, key: {env: CAB_KEY}}
tasks: ["polyglot/*"]
"""


def load(tmp_path, text):
    path = tmp_path / "sweep.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_spec(path)


def test_the_free_sweep():
    loaded = load_spec(FREE)
    spec = loaded.spec
    assert spec.clis == ("opencode", "aider", "oracle", "noop")
    assert [model.id for model in spec.models if model.endpoint is None] == [
        "embedded/reference",
        "embedded/idle",
        "embedded/wrong",
        "embedded/loop",
        "embedded/refuse",
        "embedded/false-claim",
        "local/qwen2.5-coder-0.5b",
    ]
    assert [model.id for model in spec.models if model.local] == ["local/qwen2.5-coder-0.5b"]
    assert spec.excludes(("aider", "embedded/loop", "polyglot/c", "factory"))
    assert not any(
        rule.covers((cli, "embedded/reference", "a/b", "factory"))
        for cli in spec.clis
        for rule in spec.exclude
    )
    assert list(spec.endpoints["hosted"].variables()) == ["CAB_ENDPOINT", "CAB_KEY"]
    assert (spec.runs, spec.concurrency, spec.seed, spec.retries, spec.timeout_s) == (1, 2, 20260501, 2, None)
    assert spec.limits.resolve().memory_bytes == 4 << 30
    assert loaded.digest.startswith("sha256:")
    assert sweep_id(spec, date(2026, 11, 27)) == "free-20261127"


@pytest.mark.parametrize(
    ("rule", "column", "said"),
    [
        ("{cli: aidr}", 17, "cli 'aidr' of exclude matches none of the sweep's (did you mean 'aider'?)"),
        ("{cli: aider, task: b*}", 30, "task 'b*' of exclude matches none"),
        ("{cli: noop, model: m}", 11, "leaves out no cell of the sweep (take it out, or change it)"),
    ],
)
def test_an_exclusion_that_leaves_out_nothing_is_refused(tmp_path, rule, column, said):
    loaded = load(tmp_path, GOOD.replace("tasks:", f"exclude: [{rule}]\ntasks:"))
    points = [("aider", "m", "a", "factory"), ("noop", "none", "a", "factory")]
    with pytest.raises(InputError) as caught:
        loaded.require_exclusions(points)
    assert f"sweep.yaml:8:{column}: " in str(caught.value)
    assert said in str(caught.value)
    load(tmp_path, GOOD.replace("tasks:", "exclude: [{cli: noop}]\ntasks:")).require_exclusions(points)


def test_defaults(tmp_path):
    spec = load(tmp_path, GOOD).spec
    assert (spec.runs, spec.concurrency, spec.retries, spec.description) == (1, 1, 2, "")
    assert spec.limits == LimitSpec()
    assert spec.endpoints["hosted"].wire == "chat"
    assert spec.endpoints["hosted"].concurrency is None


def test_a_url_may_be_written_out(tmp_path):
    spec = load(tmp_path, GOOD.replace("{env: CAB_ENDPOINT}", "http://127.0.0.1:8000/v1")).spec
    assert spec.endpoints["hosted"].base_url.url == "http://127.0.0.1:8000/v1"
    assert list(spec.endpoints["hosted"].variables()) == ["CAB_KEY"]


BAD = {
    "name of a local model": (
        "embedded/reference",
        "local/a/b",
        "4:5",
        "'a/b' is no name of a local model",
    ),
    "local model at an endpoint": (
        "openai/gpt-oss-120b",
        "local/m",
        "5:",
        "a local model has no endpoint (leave endpoint out)",
    ),
    "endpoint named as a local model": (
        "  hosted: {",
        "  local/m: {base_url: {env: X}}\n  hosted: {",
        "7:3",
        "an endpoint's name cannot begin with local/",
    ),
    # what is wrong: (replaced, by, line:column, what it says)
    "duplicate key": (
        "tasks:",
        "name: two\ntasks:",
        "8:1",
        "the key 'name' is there twice (line 1 has it too)",
    ),
    "tab": ("  - embedded/reference", "\t- embedded/reference", "4:1", "a tab where YAML wants spaces"),
    "anchor": ("[opencode, noop]", "&a [opencode]", "2:", "anchors and aliases are not read here"),
    "bare glob": ('["polyglot/*"]', "[*, a]", "8:", 'quote a glob: "*"'),
    "unknown anchor": ('["polyglot/*"]', "[*all]", "8:", "is no YAML"),
    "merge key": ("name: free", "<<: {name: free}", "1:1", "the key '<<' is no text"),
    "tag": ("[opencode, noop]", "!!set {a}", "2:", "is not read here"),
    "number as key": ("name: free", "1: free", "1:1", "the key '1' is no text (quote it)"),
    "hexadecimal": ("name: free", "name: free\nseed: 0x1F", "2:7", "can be read in more than one way"),
    "date": ("name: free", "name: 2026-05-01", "1:7", "can be read in more than one way"),
    "version as a name": ("name: free", "name: 1.10", "1:7", "name: is no text but a number (quote it)"),
    "exponent as a name": ("name: free", "name: 1e3", "1:7", "'1e3' can be read in more than one way"),
    "number as a CLI": ("[opencode, noop]", "[noop, 1.10]", "2:14", "is no text but a number (quote it)"),
    "number as a model": ("embedded/reference", "1.5", "4:5", "is no text but a number (quote it)"),
    "alias bomb": (
        "name: free",
        "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nname: free",
        "1:4",
        "anchors and aliases are not read here",
    ),
    "no end": ('["polyglot/*"]', "[a", "", "is no YAML"),
    "two documents": ("tasks:", "---\ntasks:", "8:1", "another document"),
    "unknown key": ("name: free", "name: free\nconcurency: 2", "2:1", "did you mean 'concurrency'?"),
    "nested key": (
        "key: {env",
        "kye: {env",
        "7:43",
        "unknown key 'endpoints.hosted.kye' (did you mean 'key'?)",
    ),
    "model key": ("endpoint: hosted", "endpont: hosted", "5:", "did you mean 'endpoint'?"),
    "env key": ("{env: CAB_KEY}", "{evn: CAB_KEY}", "7:", "did you mean 'env'?"),
    "missing key": ("name: free\n", "", "1:1", "the key 'name' is missing (add name: …)"),
    "text for number": (
        "name: free",
        "name: free\nruns: two",
        "2:7",
        "runs: input should be a valid integer",
    ),
    "yes for number": (
        "name: free",
        "name: free\nruns: true",
        "2:7",
        "runs: input should be a valid integer",
    ),
    "fraction": ("name: free", "name: free\nruns: 1.5", "2:7", "runs: input should be a valid integer"),
    "no runs": (
        "name: free",
        "name: free\nruns: 0",
        "2:7",
        "runs: input should be greater than or equal to 1",
    ),
    "bare size": (
        "name: free",
        "name: free\nlimits: {memory: 4}",
        "2:18",
        "4 is no size; write a number with a unit",
    ),
    "small memory": ("name: free", "name: free\nlimits: {memory: 4MiB}", "2:18", "greater than or equal to"),
    "unknown limit": ("name: free", "name: free\nlimits: {mem: 4GiB}", "2:10", "unknown key 'limits.mem'"),
    "name": ("name: free", "name: ../free", "1:7", "is no name of a sweep"),
    "no CLI": ("[opencode, noop]", "[]", "2:7", "clis: "),
    "CLI twice": ("[opencode, noop]", "[noop, noop]", "2:7", "clis: 'noop' is there twice"),
    "CLI name": ("[opencode, noop]", "[open code]", "2:8", "'open code' is no CLI's name or glob"),
    "no list": ("[opencode, noop]", "opencode", "2:7", "clis: input should be a valid"),
    "model none": ("embedded/reference", "none", "4:5", "is the model of CLIs that use none"),
    "embedded": ("embedded/reference", "embedded/refrence", "4:5", "did you mean 'embedded/reference'?"),
    "exclude key": (
        "tasks:",
        "exclude: [{cli: noop, modle: none}]\ntasks:",
        "8:",
        "unknown key 'exclude.0.modle' (did you mean 'model'?)",
    ),
    "exclude all": ("tasks:", "exclude: [{}]\ntasks:", "8:11", "give at least one of cli, model, task"),
    "embedded with endpoint": (
        "embedded/reference",
        "{id: embedded/idle, endpoint: hosted}",
        "4:35",
        "an embedded model has no endpoint",
    ),
    "no endpoint": (
        "{id: openai/gpt-oss-120b, endpoint: hosted}",
        "gpt",
        "5:5",
        "model 'gpt' has no endpoint",
    ),
    "unknown endpoint": ("endpoint: hosted}", "endpoint: hostd}", "5:41", "did you mean 'hosted'?"),
    "literal key": ("{env: CAB_KEY}", "sk-secret", "7:", "a key never stands in a file; use {env: NAME}"),
    "URL with key": ("{env: CAB_ENDPOINT}", "https://u:sk-secret@h/", "7:", "holds no user, password"),
    "no URL": ("{env: CAB_ENDPOINT}", "localhost:80", "7:", "is no http:// or https:// URL"),
    "URL left out": ("base_url: {env: CAB_ENDPOINT}", "base_url: {}", "7:", "give a URL, or {env: NAME}"),
    "variable": ("env: CAB_KEY", "env: $CAB_KEY", "7:", "is no name of an environment variable"),
    "wire": ("key: {env: CAB_KEY}", "wire: chatt", "7:", "wire: input should be 'chat'"),
    "cap": ("key: {env: CAB_KEY}", "concurrency: 0", "7:", "should be greater than or equal to 1"),
    "task": ("polyglot/*", "polyglot/ä", "8:9", "is no task name or glob"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_sweep_is_one_clear_line(tmp_path, case):
    replaced, by, at, says = BAD[case]
    assert replaced in GOOD
    with pytest.raises(InputError) as caught:
        load(tmp_path, GOOD.replace(replaced, by, 1))
    text = str(caught.value)
    assert says in text
    assert f"sweep.yaml:{at}" in text
    assert "\n" not in text
    assert caught.value.mend
    assert "sk-secret" not in text


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\xff", "is not UTF-8"),
        (b"name: \x07", "is no YAML"),
        (b"", "holds no sweep"),
        (b"- a\n", "holds no sweep"),
        (b"\xff\xfen\x00a\x00", "is not UTF-8"),
        (b"# \n" * (1 << 19), "is larger than 1 MiB"),
        (b"[" * 600, "nested too deeply"),
        (b"[" * 20 + b"]" * 20, "nested too deeply"),
    ],
)
def test_what_is_no_sweep_at_all(tmp_path, content, says):
    with pytest.raises(InputError, match=says):
        load(tmp_path, content)


@pytest.mark.parametrize("name", ["no", "on", "y", "null_", "1.10.1"])
def test_words_that_other_readers_of_yaml_bend_are_names(tmp_path, name):
    assert load(tmp_path, GOOD.replace("name: free", f"name: {name}")).spec.name == name


def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path):
    assert load(tmp_path, b"\xef\xbb\xbf" + GOOD.encode()).spec.name == "free"


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none\.yaml: No such file"):
        load_spec(tmp_path / "none.yaml")


def test_the_first_of_two_faults_is_told(tmp_path):
    with pytest.raises(InputError, match=r":3:1: unknown key 'zzz'"):
        load(tmp_path, "name: free\nclis: [a]\nzzz: 1\nruns: no\ntasks: [a]\n")


def test_unknown_names_are_told_with_their_line(tmp_path):
    loaded = load(tmp_path, GOOD)
    loaded.require_known("clis", ["noop", "opencode"])
    with pytest.raises(
        InputError, match=r":2:8: unknown name 'opencode' under clis \(did you mean 'open-code'\?\)"
    ):
        loaded.require_known("clis", ["noop", "open-code"])
    with pytest.raises(InputError, match=r"known: aider, goose"):
        loaded.require_known("clis", ["goose", "aider"])


@settings(max_examples=50)
@given(st.text(max_size=200))
def test_no_text_is_a_traceback(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("any") / "sweep.yaml"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    with pytest.raises(InputError) as caught:
        load_spec(path)
    assert "\n" not in str(caught.value)


def test_a_stored_spec_reads_back_as_it_was() -> None:
    spec = load_spec(Path(__file__).parents[3] / "sweeps" / "free.yaml").spec
    assert SweepSpec.of_data(spec.model_dump(mode="json")) == spec


def test_a_glob_that_matches_nothing_is_told_with_its_line(tmp_path):
    loaded = load(tmp_path, GOOD.replace('["polyglot/*"]', '["polyglot/*", "polyglt/x"]'))
    with pytest.raises(
        InputError, match=r"sweep\.yaml:8:23: unknown name 'polyglt/x' under tasks .*'polyglot/x'"
    ):
        loaded.require_known("tasks", ["polyglot/x"])
    with pytest.raises(InputError, match=r"sweep\.yaml:8:9: unknown name 'polyglot/\*' under tasks"):
        loaded.require_known("tasks", ["polyglt/x"])


def test_a_cli_that_asks_a_model_needs_one(tmp_path):
    loaded = load(tmp_path, "name: mine\nclis: [noop, opencode]\ntasks: [a/b]\n")
    loaded.require_models([])
    with pytest.raises(InputError, match=r"sweep\.yaml:2:14: opencode asks a model, but models is empty"):
        loaded.require_models(["opencode"])
    load(tmp_path, GOOD).require_models(["opencode"])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("{temprature: 0}", r"unknown key 'models\.0\.settings\.temprature'.*'temperature'"),
        ("{reasoning_effort: hihg}", r"reasoning_effort.*'high'"),
        ("{temperature: 3}", r"temperature.*less than or equal to 2"),
        ("{max_output_tokens: 0}", r"max_output_tokens.*greater than or equal to 1"),
        ("{seed: true}", r"seed.*integer"),
    ],
)
def test_settings_of_a_model_are_strictly_checked(tmp_path, settings, said):
    text = (
        "name: mine\nclis: [aider]\ntasks: [a/b]\nendpoints: {up: {base_url: 'http://127.0.0.1:1'}}\n"
        "models:\n  - {id: m, endpoint: up, settings: "
    )
    with pytest.raises(InputError, match=rf"sweep\.yaml:6:.*{said}"):
        load(tmp_path, f"{text}{settings}}}\n")
    loaded = load(tmp_path, f"{text}{{temperature: 0, reasoning_effort: high}}}}\n")
    assert loaded.spec.models[0].settings.given() == {"temperature": 0.0, "reasoning_effort": "high"}
    assert SweepSpec.of_data(loaded.spec.model_dump(mode="json")) == loaded.spec


def test_a_scripted_model_has_no_settings(tmp_path):
    text = "name: m\nclis: [aider]\ntasks: [a/b]\nmodels: [{id: embedded/idle, settings: {seed: 1}}]\n"
    with pytest.raises(InputError, match="an embedded model has no settings"):
        load(tmp_path, text)


def test_runs_may_go_on_until_the_ranking_is_decided(tmp_path):
    spec = load(tmp_path, GOOD + "runs: {min: 2, max: 12, until: ranking}\n").spec
    assert (adaptive(spec.runs), fewest(spec.runs), most(spec.runs)) == (spec.runs, 2, 12)
    assert SweepSpec.of_data(spec.model_dump(mode="json")) == spec
    fixed = load(tmp_path, GOOD + "runs: 3\n").spec.runs
    assert (adaptive(fixed), fewest(fixed), most(fixed)) == (None, 3, 3)


@pytest.mark.parametrize(
    ("runs", "column", "said"),
    [
        ("{min: 5, max: 3, until: ranking}", 7, "runs: min 5 is above max 3; exchange them"),
        ("{min: 1, max: 3, until: ranking}", 13, "runs.min: 1 is below 2: chance shows from the second run"),
        (
            "{min: 2, max: 3, until: rankng}",
            31,
            "runs.until: 'rankng' is nothing that runs go on until; did you",
        ),
        ("{min: 2, max: 3}", 7, "the key 'runs.until' is missing (add until: …)"),
        ("{min: 2, maxx: 3, until: ranking}", 16, "unknown key 'runs.maxx' (did you mean 'max'?)"),
        ("{min: 2, max: 12.5, until: ranking}", 21, "runs.max: input should be a valid integer"),
        ("{min: 2, max: 1001, until: ranking}", 21, "runs.max: input should be less than or equal to 1000"),
        ("0", 7, "runs: input should be greater than or equal to 1"),
        ("many", 7, "runs: input should be a valid integer"),
        ("[2, 12]", 7, "runs: input should be a valid integer"),
    ],
)
def test_runs_that_cannot_be_are_told_with_their_place(tmp_path, runs, column, said):
    with pytest.raises(InputError) as caught:
        load(tmp_path, GOOD + f"runs: {runs}\n")
    assert f"sweep.yaml:9:{column}: {said}" in str(caught.value)
