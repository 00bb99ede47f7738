"""One hardened container, in the engine's words."""

from __future__ import annotations

from typing import Any

from orchestrator.adapter import GATEWAY_PORT
from orchestrator.sandbox.contract import ContainerSpec

RUN_DIR = "/run/cab"
NAME_PORT = 53

# Else the engine gives the container the host's own resolver and search domains. Answers come at once.
_OWN_NAMES = {"Dns": ["127.0.0.1"], "DnsSearch": ["."], "DnsOptions": ["timeout:1", "attempts:1"]}


def config_of(spec: ContainerSpec) -> dict[str, Any]:
    """The engine's words for a hardened container with cab's PID 1."""
    init = [f"{RUN_DIR}/init"]
    if spec.model_socket:
        init += ["--model", f"{RUN_DIR}/model.sock", "--port", str(GATEWAY_PORT)]
    init += ["--limit-ms", str(max(1, round(spec.time_limit_s * 1000)))]
    if spec.names:
        init += ["--names", str(NAME_PORT)]
    if spec.tty is not None:
        init += ["--tty", f"{spec.tty.columns}x{spec.tty.rows}"]
    limits = spec.limits
    return {
        "Image": spec.image_id,
        "Entrypoint": [*init, "--"],
        "Cmd": list(spec.argv),
        "Env": [f"{name}={value}" for name, value in spec.env.items()],
        "WorkingDir": spec.workdir,
        "User": f"{spec.user[0]}:{spec.user[1]}",
        "Labels": spec.labels,
        "Hostname": "localhost",
        "Tty": spec.tty is not None,
        "Healthcheck": {"Test": ["NONE"]},
        # PID 1 heeds no signal, since the agent could send it too.
        "StopSignal": "SIGKILL",
        "HostConfig": {
            "AutoRemove": True,
            "NetworkMode": "none",
            **(_OWN_NAMES if spec.names else {}),
            "ReadonlyRootfs": True,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "IpcMode": "private",
            "Init": False,
            "LogConfig": {"Type": "none"},
            "Memory": limits.memory_bytes,
            "MemorySwap": limits.memory_bytes,
            "NanoCpus": round(limits.cpus * 1e9),
            "PidsLimit": limits.pids,
            # A crash is not to leave a core file among the agent's changes.
            "Ulimits": [{"Name": "core", "Soft": 0, "Hard": 0}],
            "Tmpfs": {"/tmp": f"rw,nosuid,nodev,exec,mode=1777,size={limits.tmp_bytes}"},
            "Mounts": [
                {"Type": "bind", "Source": str(source), "Target": target, "ReadOnly": read_only}
                for source, target, read_only in (
                    (spec.run_dir, RUN_DIR, True),
                    *((mount.source, mount.target, mount.read_only) for mount in spec.mounts),
                )
            ],
        },
    }
