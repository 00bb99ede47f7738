"""`python -m orchestrator.gateway --log FILE`: the gateway process, steered over stdin and stdout."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import resource
import sys

from orchestrator.gateway.control import serve


def main() -> None:
    """Serve until stdin ends: that is the runner's death or its wish, and either way nothing is to outlive
    it.
    """
    parser = argparse.ArgumentParser(prog="orchestrator.gateway")
    parser.add_argument("--log", required=True, help="file for the gateway's own faults")
    arguments = parser.parse_args()
    os.umask(0o077)
    # A core dump would hold the keys.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    logging.basicConfig(
        filename=arguments.log, level=logging.WARNING, format="%(asctime)s %(name)s %(levelname)s %(message)s"
    )
    # The HTTP server's own messages quote what a client sent; faults of ours are logged by the cell.
    logging.getLogger("aiohttp.server").disabled = True
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    asyncio.run(serve(sys.stdin.buffer, answers))


if __name__ == "__main__":
    main()
