#!/usr/bin/env bash
# Set everything up: the virtual environment, the Docker engine, the images. Can be run again at any time; what is
# there is left alone.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

STAMP=.venv/.cab-setup
# What the tests and sweeps/free.yaml run: one CLI for each wire, aider, the baselines. `make fleet` builds all.
IMAGES=(base init node oracle noop opencode aider codex claude-code gemini-cli)

# The first Python on PATH that is new enough and can make virtual environments.
find_python() {
    local name
    for name in python3 python3.14 python3.13 python3.12 python3.11; do
        if "$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
    return 1
}

# What the virtual environment was made from.
inputs() {
    cat requirements.lock requirements-local.lock requirements-build.lock pyproject.toml scripts/setup.sh | sha256sum
    pwd
}

make_venv() {
    local python pip=(.venv/bin/python -m pip install --disable-pip-version-check --no-input --no-compile --progress-bar off --retries 10)
    if ! python="$(find_python)" && can_apt; then
        timed "installing python3-venv" apt_install python3 python3-venv
    fi
    python="$(find_python)" || die "no Python 3.11 or newer with venv" "install python3 and python3-venv"
    rm -f build/logs/venv.log
    logged venv "$python" -m venv --clear .venv
    logged venv "${pip[@]}" --require-hashes -r requirements.lock -r requirements-build.lock
    # Where its maker has no wheel for this machine, all but local models works.
    if "${pip[@]}" --only-binary :all: --require-hashes -r requirements-local.lock </dev/null >>build/logs/venv.log 2>&1; then
        say "local models can be served"
    else
        say "local models cannot be served here: no xllamacpp for this machine (build/logs/venv.log)"
    fi
    # The build backend is there already, checked by its hash: nothing else is fetched.
    logged venv "${pip[@]}" --no-deps --no-build-isolation -e .
    inputs >"$STAMP"
}

[ -f "$STAMP" ] && [ "$(cat "$STAMP")" = "$(inputs)" ] || timed "making the virtual environment" make_venv
# No sweep needs it: without, a site links recordings instead of playing them. Tests do: scripts/browser.sh.
scripts/npm.sh asciinema-player || say "sites are built without the player of recordings"
scripts/engine.sh
there=()
for name in "${IMAGES[@]}"; do
    [ ! -f "images/$name/Dockerfile" ] || there+=("$name")
done
.venv/bin/cab images build "${there[@]}"
