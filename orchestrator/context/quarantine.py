"""Content that must not be handed on as it is: which rules a text of a tool or an agent breaks.

The rules read a text as a model would: characters without a width taken out, look-alikes made Latin,
letters set apart joined, base64 decoded. They find what has a shape, and prove nothing of the rest.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType

from orchestrator.context.events import Event, Source
from orchestrator.context.redact import UNSEEN, decoded, has_key
from orchestrator.context.texts import plain

TRUSTED: frozenset[Source] = frozenset(("user", "harness"))
"""Whose content is taken as it is. Keys are taken out of theirs, too."""

RULES: Mapping[str, str] = MappingProxyType(
    {
        "overrides_instructions": "it tries to override instructions",
        "role_marker": "it poses as another speaker",
        "exfiltration": "it asks to send data away",
        "credential": "it holds a credential",
        "reads_credentials": "it asks for a file of credentials",
        "destructive_command": "it holds a command that destroys",
        "remote_code": "it has code fetched and run",
        "encoded_payload": "it hides such content in an encoding",
        "hidden_characters": "it holds characters that are not seen",
    }
)
"""Every rule, with what is said to the model of a text that breaks it."""

_SAID = r"(?:instructions?|prompts?|directions|directives|guidelines|guardrails|orders)"
_SET = r"(?:rules|constraints|policies|restrictions|limits)"
_EARLIER = (
    r"(?:previous|prior|above|earlier|preceding|existing|original|former|initial|system|safety|user'?s?)"
)
_DROP = r"(?:ignore|disregard|forget|override|overrule|bypass|neglect)"
_NOT_FOLLOW = r"(?:do not follow|don't follow|stop following|no longer follow|discard|abandon|skip|drop)"
_SOME = r"(?:\w+ +){0,3}?"
_OVERRIDES = (
    rf"\b(?:{_DROP}|{_NOT_FOLLOW}) +{_SOME}(?:{_EARLIER} +)+{_SOME}{_SAID}\b",
    rf"\b{_DROP} +{_SOME}(?:{_EARLIER.replace('|existing|original|former|initial', '')} +)+{_SOME}{_SET}\b",
    rf"\b{_DROP} +(?:all|any|every|your|these|those)(?: +(?:of|the|your))* +{_SAID}\b",
    rf"\b{_DROP} +(?:all +)?(?:of +)?your +{_SET}\b",
    r"\b(?:ignore|disregard|forget) +(?:everything|anything|all|what) +(?:\w+ +){0,4}"
    r"(?:above|before|said|told|so far)",
    r"\byou are now (?:an? +(?:\w+ +){0,2}(?:ai|assistant|agent|hacker|admin\w*|root|expert)|dan|free"
    r"|unrestricted)\b",
    r"\byou are (?:now )?(?:in (?:developer|admin|god|root|maintenance|unrestricted) mode"
    r"|no longer (?:bound|limited))\b",
    rf"\b(?:new|updated|revised|real|actual|true) +(?:system +)?{_SAID} *(?:follow|are|is)? *:",
    r"\bsystem prompt\b[^.\n]{0,40}\b(?:reveal|print|overridden|replaced|updated|disabled)",
    r"\b(?:reveal|print|repeat|output|show)\b[^.\n]{0,30}"
    r"\b(?:system prompt|hidden instructions|developer message)",
    r"\b(?:do not|don't|never) +(?:tell|inform|mention \w+ to|alert) +(?:the +)?(?:user|human|operator)\b",
    r"\b(?:attention|note to|message (?:to|for)|instructions? (?:to|for)) *:? +(?:the +|all +|any +)?"
    r"(?:ai|llms?|language models?|coding agents?|ai (?:agents?|assistants?))\b",
)
_ROLES = (
    r"<\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id|end_header_id|begin_of_text"
    r"|channel)\|>",
    r"\[/?inst\]|<</?sys>>|<(?:start|end)_of_turn>",
    r"</?(?:system|assistant|developer|system[-_]reminder|system[-_]prompt|function_calls|tool_result)\s*>",
    r"^ *(?:#+ *|\*\*)?(?:human|assistant)(?:\*\*)? *:",
    r"^ *(?:#+ *|\*\*)?(?:system|developer|user)(?:\*\*)? *(?:prompt|message|instructions?)?(?:\*\*)? *:"
    r"(?:\*\*)? *(?:you (?:are|must|should|will|can|may)|your (?:task|new|role)|ignore|disregard|from now on"
    r"|new instructions)",
    r"^ *#+ *(?:system|developer) *(?:prompt|message|instructions?) *:? *$",
    r"^ *(?:system|developer|admin(?:istrator)?|operator) *(?:prompt|message|notice)? *:[^\n]{0,200}"
    r"\byou (?:must|shall|should|are to|have to|need to|will)\b",
)
_SENT = r"(?:--data(?:-\w+)?|-d|--upload-file|-t|-f|--post-(?:file|data))"
_AWAY = (
    r"\b(?:curl|wget|nc|ncat|scp|rsync|invoke-webrequest)\b[^\n]{0,200}(?:\$\(|`|\$\{?\w*(?:key|token|secret|password)"
    r"|\$env:|\bprintenv\b|/etc/passwd|\.ssh/|\.env\b|\.aws/|credentials)",
    r"\b(?:env|printenv|cat +\S+|base64[^\n|]{0,80}) *\|[^\n]{0,80}\b(?:curl|wget|nc|ncat)\b",
    rf"\b(?:curl|wget)\b[^\n]{{0,200}} {_SENT}[ =]+@?[^\n]{{0,120}}\bhttps?://(?!localhost|127\.)",
    rf"\b(?:curl|wget)\b[^\n]{{0,200}}\bhttps?://(?!localhost|127\.)[^\n]{{0,200}} {_SENT}[ =]+",
    r"\b(?:send|post|upload|exfiltrate|forward|transmit|leak|e-?mail)\b[^.\n]{0,60}\b(?:source|secrets?|credentials?"
    r"|tokens?|(?:api|ssh|private) ?keys?|passwords?|environment(?: variables)?|contents?|repository|\.env)\b"
    r"[^.\n]{0,60}\bto +(?:https?://|\S{1,60}@\S{1,60}\.\w|[\w-]{1,60}\.(?:com|net|org|io|example|invalid)\b)",
    r"!\[[^\]\n]{0,200}\]\(https?://[^)\n]{0,300}(?:\{|\$|key=|token=|secret=|data=)",
)
_CREDENTIAL_FILES = (
    r"\b(?:cat|less|head|tail|cp|read|open|print|show|include)\b[^\n]{0,60}(?:~|\$home|/root|/home/\w+)/?"
    r"(?:\.ssh/id_\w+|\.aws/credentials|\.netrc|\.npmrc|\.pypirc|\.git-credentials|\.codex/auth\.json|\.kube/config"
    r"|\.docker/config\.json)",
    r"/etc/shadow\b",
)
_DESTROYS = (
    r"\brm +(?:-\w+ +){0,4}-\w*(?:r\w*f|f\w*r)\w* +(?:--\S+ +){0,4}[\"']?"
    r"(?:/(?!\w+/\w)|~|\$\{?home|\*(?!\.\w)|\.{1,2}/?(?=[ \n\"';]|$)|(?:\./)?\.git\b(?!\w))",
    r"\brm\b[^\n]{0,80}--no-preserve-root",
    r"\bgit +(?:-\S+ +){0,4}(?:reset +(?:\S+ +){0,3}--hard|clean +-\w*f\w*"
    r"|push +(?:\S+ +){0,4}(?:--force(?!-)|-f)\b|checkout +(?:-f +)?(?:-- +)?\.(?=\s|$)"
    r"|branch +-d +(?:main|master)\b|filter-branch|stash +(?:drop|clear))",
    r"\bmkfs(?:\.\w+)? +[/-]|\bdd +[^\n]{0,120}\bof=/dev/(?!null)|> */dev/(?:sd|nvme|hd|vd)\w|\bwipefs +-",
    r":\(\) *\{ *: *\| *: *& *\} *;",
    r"\bchmod +(?:-\w+ +){0,3}0?777 +(?:/|~)|\bchown +-\w*r\w* +\S+ +/(?=\s|$)",
    r"\bdrop +(?:database|schema) +\w",
    r"\bshutil\.rmtree\( *[\"'](?:/|~|\.)[\"']|\bremove-item\b[^\n]{0,120}-recurse[^\n]{0,40}-force",
    r"\bformat +c:(?=[\s/]|$)|\b(?:shutdown|reboot|poweroff) +(?:-[hrpf]|now)\b|\bkill +-9 +-1\b",
)
_FETCHED = (
    r"\b(?:curl|wget|fetch)\b[^\n|]{0,300}\| *(?:sudo +)?(?:env +)?(?:ba|z|da|k)?sh\b",
    r"\b(?:curl|wget)\b[^\n|]{0,300}\| *(?:sudo +)?(?:python3?|perl|ruby|node)\b",
    r"\b(?:ba|z|da)?sh +(?:-c +)?[\"']?(?:<\(|\$\() *(?:curl|wget)\b",
    r"\beval +[\"']?(?:\$\(|`) *(?:curl|wget)\b",
    r"\b(?:exec|eval) *\( *(?:requests\.get|urllib\.request|urlopen|base64\.)",
    r"\b(?:base64 +(?:-d|--decode)|xxd +-r)[^\n]{0,80}\| *(?:sudo +)?(?:ba|z|da)?sh\b|\binvoke-expression\b",
)

_SHAPES = {
    name: re.compile("|".join(f"(?:{shape})" for shape in shapes), re.MULTILINE)
    for name, shapes in {
        "overrides_instructions": _OVERRIDES,
        "role_marker": _ROLES,
        "exfiltration": _AWAY,
        "reads_credentials": _CREDENTIAL_FILES,
        "destructive_command": _DESTROYS,
        "remote_code": _FETCHED,
    }.items()
}

# Letters of other scripts that look like Latin ones; compatibility forms (ｉ, ⅰ) are mended by NFKC.
_LOOK_ALIKES = str.maketrans(
    "аеорсухіјѕԁɡһӏԛԝѵАВЕКМНОРСТУХІЈЅαεικνορτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijsdghlqwvABEKMHOPCTYXIJSaeikvoptuxABEZHIKMNOPTYX",
)
_SPACED = re.compile(r"\b\w(?:[ .\-_*]\w){4,}\b")
# Joiners between emoji or in scripts that need them are nothing hidden: only beside Latin letters.
_HIDDEN = re.compile(
    "[\u202a-\u202e\u2066-\u2069\U000e0100-\U000e01ef]|(?<!\U0001f3f4)(?<![\U000e0020-\U000e007f])[\U000e0020-\U000e007f]"
    "|(?<=[A-Za-z])[\u00ad\u200b-\u200f\u2060-\u2064\ufeff\u180e]+(?=[A-Za-z])|[\u200b\u2060-\u2064\u180e]{3,}"
    "|[\ufe00-\ufe0f]{3,}"
)
_HEX = re.compile(r"\b(?:[0-9a-fA-F]{2}){16,}\b|(?:\\x[0-9a-fA-F]{2}){8,}")
_DEEPEST = 2
"""Encodings inside encodings that are looked into."""


@lru_cache(maxsize=2048)
def risks_of(text: str) -> tuple[str, ...]:
    """The names of the rules (`RULES`, in their order) that `text` breaks."""
    found = _plain_risks(text)
    if has_key(text):
        found.add("credential")
    if _HIDDEN.search(text):
        found.add("hidden_characters")
    if _hides(text, _DEEPEST):
        found.add("encoded_payload")
    return tuple(rule for rule in RULES if rule in found)


def risks_of_event(event: Event) -> tuple[str, ...]:
    """The rules that text, key or files of an event break; none for one of a trusted source."""
    return () if event.source in TRUSTED else risks_of("\n".join((event.text, event.key, *event.files)))


def said_of(rules: Iterable[str]) -> str:
    """The broken rules in words, for who may not see the text."""
    return ", ".join(RULES[rule] for rule in rules)


def digest_of(text: str) -> str:
    """By which a receipt names a text that it does not show: the first 16 digits of its SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _plain_risks(text: str) -> set[str]:
    """Rules that a text breaks as a model reads it, whatever it is written with."""
    folded = unicodedata.normalize("NFKC", UNSEEN.sub("", text)).translate(_LOOK_ALIKES).replace("’", "'")
    lines = re.sub(r"\\\n *|[ \t]+", " ", plain(folded)).lower()
    found = {name for name, shape in _SHAPES.items() if shape.search(lines)}
    # Prose goes on over the end of a line, and may be set letter by letter; commands and roles do not.
    prose = " ".join(lines.split())
    joined = _SPACED.sub(lambda match: re.sub(r"[ .\-_*]", "", match[0]), lines)
    if any(_SHAPES["overrides_instructions"].search(read) for read in {prose, joined} - {lines}):
        found.add("overrides_instructions")
    return found


def _hides(text: str, depth: int) -> bool:
    """Whether something that breaks a rule stands in an encoding in `text`."""
    return any(
        bool(_plain_risks(inner)) or (depth > 1 and _hides(inner, depth - 1))
        for inner in (*decoded(text), *_of_hex(text))
    )


def _of_hex(text: str) -> Iterator[str]:
    for match in _HEX.finditer(text):
        yield bytes.fromhex(match[0].replace("\\x", "")).decode("utf-8", "replace")
