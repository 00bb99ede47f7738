#!/usr/bin/env bash
# Install what the gateway is measured beside, each into a virtual environment of its own below build/bench-venv,
# every package checked by its hash. Can be run again at any time; what is there is left alone.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

install_peer() {
    local lock="requirements-bench-$1.lock" venv="build/bench-venv/$1" stamp
    stamp="$(sha256sum "$lock")"
    [ -f "$venv/.cab-setup" ] && [ "$(cat "$venv/.cab-setup")" = "$stamp" ] && return
    logged "bench-$1" .venv/bin/python -m venv --clear "$venv"
    timed "installing $1, to measure beside" logged "bench-$1" "$venv/bin/python" -m pip install \
        --disable-pip-version-check --no-input --progress-bar off --retries 10 --require-hashes -r "$lock"
    printf '%s\n' "$stamp" >"$venv/.cab-setup"
}

install_peer litellm
install_peer mitmproxy
