"""The wires that the gateway serves, by name: one module each."""

from orchestrator.adapter import Wire
from orchestrator.gateway.wire import WireFormat
from orchestrator.gateway.wires.chat import ChatWire
from orchestrator.gateway.wires.gemini import GeminiWire
from orchestrator.gateway.wires.messages import MessagesWire
from orchestrator.gateway.wires.responses import ResponsesWire

WIRES: dict[Wire, WireFormat] = {
    "chat": ChatWire(),
    "responses": ResponsesWire(),
    "messages": MessagesWire(),
    "gemini": GeminiWire(),
}

UNASKED_WIRES: dict[Wire, WireFormat] = {**WIRES, "chat": ChatWire(ask_usage=False)}
"""The same for endpoints that refuse to be asked for the usage of a stream."""
