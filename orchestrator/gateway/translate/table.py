"""The translations by the wire of the CLI. Apart from the package, which planning a sweep imports."""

from orchestrator.adapter import Wire
from orchestrator.gateway.translate.contract import Translation
from orchestrator.gateway.translate.gemini import FromGemini
from orchestrator.gateway.translate.messages import FromMessages
from orchestrator.gateway.translate.responses import FromResponses

TRANSLATIONS: dict[tuple[Wire, Wire], Translation] = {
    ("responses", "chat"): FromResponses(),
    ("messages", "chat"): FromMessages(),
    ("gemini", "chat"): FromGemini(),
}
