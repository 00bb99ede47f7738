#!/usr/bin/env bash
# What the tests of external benchmarks need beside cab: the official SWE-bench harness in an environment of its own,
# where `cab external run --run-harness` looks for it, each package checked by its hash; and the docker command, by
# which the harness ends its containers. Can be run again at any time; what is there is left alone.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

command -v docker >/dev/null || die "no docker command" "install the docker client (Debian: docker-cli or docker.io)"
timed "the SWE-bench harness" logged harness .venv/bin/python -c '
from orchestrator.external.harness_env import harness_python
harness_python()'
timed "images of the carried repositories" logged harness .venv/bin/python -c '
from pathlib import Path
from orchestrator.external.images import ensure_images
from orchestrator.external.suites import load_suite, suite_names
ensure_images([task for name in suite_names() for task in load_suite(name)], Path("build/logs/external"))'
