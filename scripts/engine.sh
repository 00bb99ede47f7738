#!/usr/bin/env bash
# Make sure that a Docker engine answers: use the one that does, start the one that is installed, or, as root on
# Debian or Ubuntu, install one. Needs the virtual environment of scripts/setup.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

ENGINE_LOG="${CAB_ENGINE_LOG:-/var/log/cab-dockerd.log}"
PID_FILES="/var/run/docker.pid /var/run/docker/containerd/containerd.pid"
START_TIMEOUT_S=60

SOCKET="${DOCKER_HOST:-unix:///var/run/docker.sock}"
SOCKET="${SOCKET#unix://}"
PING='
import socket, sys
engine = socket.socket(socket.AF_UNIX)
engine.settimeout(5)
engine.connect(sys.argv[1])
engine.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
sys.exit(b" 200 " not in engine.recv(64))
'

# Asked directly: a docker client on PATH may be of another version, or belong to no engine, and the SDK loads slowly.
answers() {
    .venv/bin/python -IS -c "$PING" "$SOCKET" 2>/dev/null
}

# runs PID_FILE: whether the process in it is the one that the file is named for.
runs() {
    local pid
    pid="$(cat "$1" 2>/dev/null)" && [ -n "$pid" ] || return 1
    case "$(cat "/proc/$pid/comm" 2>/dev/null)" in
        dockerd | containerd) return 0 ;;
        *) return 1 ;;
    esac
}

# After a restart of the machine the pid in such a file may be another process, and dockerd would not start.
remove_stale_pid_files() {
    local file
    for file in $PID_FILES; do
        if [ -e "$file" ] && ! runs "$file"; then
            say "removing $file, left by an engine that is gone"
            rm -f "$file"
        fi
    done
}

start_engine() {
    local pid="" deadline=$((SECONDS + START_TIMEOUT_S))
    if [ -d /run/systemd/system ]; then
        systemctl start docker
    elif ! runs /var/run/docker.pid; then
        remove_stale_pid_files
        setsid dockerd </dev/null >>"$ENGINE_LOG" 2>&1 &
        pid=$!
    fi
    until answers; do
        if [ "$SECONDS" -ge "$deadline" ] || { [ -n "$pid" ] && ! kill -0 "$pid" 2>/dev/null; }; then
            [ ! -f "$ENGINE_LOG" ] || tail -n 30 "$ENGINE_LOG" >&2
            die "the Docker engine does not start" "see $ENGINE_LOG, or with systemd: journalctl -u docker"
        fi
        sleep 0.2
    done
}

# What is lacking of the packages that the engine, bounded scratch and a base image without a registry need.
lacking_packages() {
    command -v dockerd >/dev/null || answers || echo docker.io iptables iproute2
    command -v mmdebstrap >/dev/null || echo mmdebstrap debian-archive-keyring
    command -v mkfs.ext4 >/dev/null || echo e2fsprogs
    command -v mount >/dev/null || echo mount
}

if can_apt; then
    packages="$(lacking_packages | tr '\n' ' ')"
    # shellcheck disable=SC2086 # a list of words
    [ -z "${packages// /}" ] || timed "installing $packages" apt_install $packages
fi
if answers; then
    exit 0
fi
if [ "$(id -u)" != 0 ]; then
    die "no Docker engine answers, or you may not use it" "install docker.io (Debian, Ubuntu) or Docker Engine, and join the group docker"
fi
command -v dockerd >/dev/null || die "no Docker engine is installed" "install Docker Engine 20.10 or newer"
timed "starting the Docker engine" start_engine
