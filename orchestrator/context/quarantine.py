"""Content that must not be handed on as it is: which rules a text of a tool or an agent breaks.

The rules read a text as a model would: characters without a width taken out, look-alikes made Latin, letters
set apart joined, base64 decoded. They find what is plain enough to have a shape and prove nothing of the rest.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
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

_GIVEN = r"(?:instructions?|rules|prompts?|directions|directives|guidelines|constraints|guardrails|policies|orders)"
_EARLIER = (
    r"(?:previous|prior|above|earlier|preceding|existing|original|former|initial|system|safety|user'?s?)"
)
_OVERRIDES = (
    rf"\b(?:ignore|disregard|forget|override|overrule|bypass|neglect|drop|skip|do not follow|don't follow"
    rf"|stop following|discard|abandon) +(?:\w+ +){{0,3}}?(?:{_EARLIER} +)+(?:\w+ +){{0,2}}?{_GIVEN}",
    rf"\b(?:ignore|disregard|forget|override|overrule|bypass) +(?:all|any|every|your|these|those)(?: +(?:of|the|your))*"
    rf" +{_GIVEN}",
    r"\b(?:ignore|disregard|forget) +(?:everything|anything|all|what) +(?:\w+ +){0,4}(?:above|before|said|told|so far)",
    r"\byou are (?:now|no longer) (?:a|an|in|the|bound|dan\b|free|unrestricted|jailbroken)",
    rf"\b(?:new|updated|revised|real|actual|true) +(?:system +)?{_GIVEN} *(?:follow|are|is)? *:",
    r"\b(?:system prompt|developer (?:message|mode))\b[^.\n]{0,40}\b(?:reveal|print|override|enabled|replaced|updated)",
    r"\b(?:reveal|print|repeat|output|show)\b[^.\n]{0,30}\b(?:system prompt|hidden instructions|developer message)",
    r"\b(?:do not|don't|never) +(?:tell|inform|mention|alert|notify)\b[^.\n]{0,30}\b(?:the )?(?:user|human|operator)\b",
    r"\b(?:attention|note to|message (?:to|for)|important,?) +(?:the +)?(?:ai|llm|language model|coding agent|assistant)s?\b",
)
_ROLES = (
    r"<\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id|end_header_id|begin_of_text|channel)\|>",
    r"\[/?inst\]|<</?sys>>|<(?:start|end)_of_turn>",
    r"</?(?:system|assistant|developer|system[-_]reminder|system[-_]prompt|instructions?|function_calls|tool_result)\s*>",
    r"^ *(?:#+ *|\*\*)?(?:human|assistant)(?:\*\*)? *:",
    r"^ *(?:#+ *|\*\*)?(?:system|developer|user)(?:\*\*)? *(?:prompt|message|instructions?)?(?:\*\*)? *:(?:\*\*)? *"
    r"(?:you (?:are|must|should|will|can|may)|your (?:task|new|role)|ignore|disregard|from now on|new instructions)",
    r"^ *#+ *(?:system|developer) *(?:prompt|message|instructions?)? *:? *$",
)
_AWAY = (
    r"\b(?:curl|wget|nc|ncat|scp|rsync|invoke-webrequest|httpie)\b[^\n]{0,200}"
    r"(?:\$\(|`|\$\{?\w*(?:key|token|secret|password)|\benv\b|printenv|/etc/passwd|\.ssh|\.env\b|\.aws|credentials)",
    r"\b(?:env|printenv|cat +\S+|base64[^\n|]*) *\|[^\n]{0,80}\b(?:curl|wget|nc|ncat)\b",
    r"\b(?:curl|wget)\b[^\n]{0,200}(?:--data(?:-\w+)?|-d|--upload-file|-t|-f|--post-(?:file|data))[ =]+@?"
    r"[^\n]{0,120}\bhttps?://",
    r"\b(?:curl|wget)\b[^\n]{0,200}\bhttps?://[^\n]{0,200} (?:--data(?:-\w+)?|-d|--upload-file|-f|--post-(?:file|data))"
    r"[ =]+",
    r"\b(?:send|post|upload|exfiltrate|forward|transmit|leak|e-?mail|report)\b[^.\n]{0,60}\b(?:source|secrets?"
    r"|credentials?|tokens?|(?:api|ssh|private) ?keys?|passwords?|environment(?: variables)?|contents?|repository|\.env)"
    r"\b[^.\n]{0,60}\b(?:to|at) +(?:https?://|\S+@\S+\.\w|\w+\.(?:com|net|org|io|example|invalid)\b)",
    r"!\[[^\]\n]*\]\(https?://[^)\n]*(?:\{|\$|key=|token=|secret=|data=)",
)
_CREDENTIAL_FILES = (
    r"\b(?:cat|less|head|tail|cp|read|open|print|show|type|more|include)\b[^\n]{0,60}(?:~|\$home|/root|/home/\w+|^|[ /'\"])"
    r"/?(?:\.ssh/id_\w+|\.aws/credentials|\.netrc|\.npmrc|\.pypirc|\.git-credentials|\.codex/auth\.json|\.kube/config"
    r"|\.docker/config\.json)",
    r"/etc/shadow\b",
)
_DESTROYS = (
    r"\brm +(?:-\w+ +)*-\w*(?:r\w*f|f\w*r)\w* +(?:--\S+ +)*[\"']?(?:/(?!\w+/\w)|~|\$\{?home|\*|\.(?:[ /\n\"';]|$)|\.\.|\.git\b)",
    r"\brm\b[^\n]*--no-preserve-root",
    r"\bgit +(?:-\S+ +)*(?:reset +(?:\S+ +)*--hard|clean +-\w*f\w*|push +(?:\S+ +)*(?:--force(?!-)|-f)\b"
    r"|checkout +(?:-f +)?(?:-- +)?\.(?:\s|$)|branch +-d +(?:main|master)\b|filter-branch|stash +(?:drop|clear))",
    r"\bmkfs(?:\.\w+)? +\S|\bdd +[^\n]*\bof=/dev/|> */dev/(?:sd|nvme|hd|vd)\w|\bwipefs\b|\bshred +-",
    r":\(\) *\{ *: *\| *: *& *\} *;",
    r"\bchmod +(?:-\w+ +)*(?:-r +)?0?777 +(?:/|~)|\bchown +-\w*r\w* +\S+ +/(?:\s|$)",
    r"\bdrop +(?:table|database|schema)\b|\btruncate +table\b",
    r"\bshutil\.rmtree\( *[\"'](?:/|~|\.)[\"']|\bremove-item\b[^\n]*-recurse[^\n]*-force|\bformat +c:",
    r"\b(?:shutdown|reboot|poweroff) +(?:-|now)|\bkill(?:all)? +-9 +-1\b|\bhistory +-c\b",
)
_FETCHED = (
    r"\b(?:curl|wget|fetch)\b[^\n|]{0,300}\| *(?:sudo +)?(?:env +)?(?:ba|z|da|k)?sh\b",
    r"\b(?:curl|wget)\b[^\n|]{0,300}\| *(?:sudo +)?(?:python3?|perl|ruby|node)\b",
    r"\b(?:ba|z|da)?sh +(?:-c +)?[\"']?(?:<\(|\$\() *(?:curl|wget)\b|\beval +[\"']?(?:\$\(|`) *(?:curl|wget)\b",
    r"\b(?:exec|eval) *\( *(?:requests\.get|urllib\.request|urlopen|base64|__import__)",
    r"\b(?:base64 +(?:-d|--decode)|xxd +-r)[^\n]*\| *(?:sudo +)?(?:ba|z|da)?sh\b|\b(?:iex|invoke-expression)\b",
)

_SHAPES = {
    name: re.compile("|".join(f"(?:{shape})" for shape in shapes), re.IGNORECASE | re.MULTILINE)
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


def risks_of(text: str) -> tuple[str, ...]:
    """The names of the rules (`RULES`, in their order) that `text` breaks."""
    found = set(_plain_risks(text))
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


def _plain_risks(text: str) -> Iterator[str]:
    read = _as_read(text)
    return (name for name, shape in _SHAPES.items() if shape.search(read))


def _as_read(text: str) -> str:
    """`text` as a model reads it, whatever it is written with; and once more with letters set apart joined."""
    folded = unicodedata.normalize("NFKC", UNSEEN.sub("", text)).translate(_LOOK_ALIKES).replace("’", "'")
    folded = re.sub(r"[ \t]+", " ", plain(folded))
    words = re.sub(r"(?<![.!?:;])\n(?! *[#>*\-]|\n)", " ", folded)
    joined = _SPACED.sub(lambda match: re.sub(r"[ .\-_*]", "", match[0]), folded)
    return "\n".join((folded, *(other for other in (words, joined) if other != folded)))


def _hides(text: str, depth: int) -> bool:
    """Whether something that breaks a rule stands in an encoding in `text`."""
    return any(
        any(True for _ in _plain_risks(inner)) or (depth > 1 and _hides(inner, depth - 1))
        for inner in (*decoded(text), *_of_hex(text))
    )


def _of_hex(text: str) -> Iterator[str]:
    for match in _HEX.finditer(text):
        yield bytes.fromhex(match[0].replace("\\x", "")).decode("utf-8", "replace")
