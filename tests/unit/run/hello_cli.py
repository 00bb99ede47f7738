"""`hello`: a CLI of a few lines that does what a model's tool calls say, so that scripted models drive it."""

from __future__ import annotations

from pathlib import Path

from orchestrator.fleet import Fleet

ADAPTER = '''\
from orchestrator.adapter import Adapter, Launch, LaunchContext

SCRIPT = """
import json, os, subprocess, urllib.request

parameters = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": parameters}}]
messages = [{"role": "user", "content": "solve it"}]
while True:
    body = json.dumps({"model": "m", "messages": messages, "tools": TOOLS}).encode()
    headers = {"Authorization": "Bearer " + os.environ["KEY"], "Content-Type": "application/json"}
    request = urllib.request.Request(os.environ["URL"] + "/v1/chat/completions", body, headers)
    message = json.load(urllib.request.urlopen(request))["choices"][0]["message"]
    messages.append(message)
    if not message.get("tool_calls"):
        print(message["content"])
        break
    for call in message["tool_calls"]:
        command = json.loads(call["function"]["arguments"])["command"]
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
        result = done.stdout + done.stderr + f"[exit {done.returncode}]"
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
"""


def launch(context: LaunchContext) -> Launch:
    return Launch(
        argv=("python3", "-c", SCRIPT),
        env={"KEY": context.credential, "URL": context.base_url},
        files={"where": context.home + " " + context.workdir},
    )


ADAPTER = Adapter(name="hello", version="1", launch=launch, wire="chat", tty=TTY, licence="MIT")
'''


def hello_fleet(images: Path, *, tty: bool = True) -> Fleet:
    """A fleet of `hello` alone."""
    (images / "hello").mkdir(parents=True)
    (images / "hello" / "adapter.py").write_text(f"{ADAPTER.replace('TTY', str(tty))}")
    return Fleet(images=images)
