"""The process that serves one model with llama.cpp. `orchestrator.gateway.local.server` starts it.

It reads one JSON line (path, alias, context, threads, port, key), answers with its URL, and serves until its
standard input ends: the kernel closes that line whatever way the runner dies, and ends this process by a
signal. A thread that waited for the end could not run while llama.cpp loads a model, which may take minutes.
The key comes over the line, since arguments and environment can be read by others.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import sys


def main() -> None:
    wanted = json.loads(sys.stdin.buffer.readline())
    # llama.cpp may print: what the runner reads is the URL alone.
    answers = os.dup(1)
    os.dup2(2, 1)
    _end_with_the_line()

    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = wanted["path"]
    params.model_alias = {wanted["alias"]}
    params.hostnames = ["127.0.0.1"]
    params.port = wanted["port"]
    params.api_keys = [wanted["key"]]
    params.n_ctx = wanted["context"]
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = wanted["threads"]
    params.use_jinja = True
    server = xllamacpp.Server(params)
    os.write(answers, f"{server.listening_address}\n".encode())
    while True:
        signal.pause()


def _end_with_the_line() -> None:
    """Have SIGIO, which ends a process that does not handle it, sent when standard input ends."""
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([0], [], [], 0)[0]:  # it had ended before
        sys.exit()


main()
