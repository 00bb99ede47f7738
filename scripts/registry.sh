#!/usr/bin/env bash
# Fetch Debian's image registry for the tests, into build/registry: one program, which they start on loopback and end.
# Not installed, since the package would start a service on every address of the machine.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

PROGRAM=build/registry/usr/bin/docker-registry
if [ -x "$PROGRAM" ] || command -v docker-registry >/dev/null; then
    exit 0
fi
if ! command -v apt-get >/dev/null; then
    say "no apt-get: the tests of push and pull are left out, unless a docker-registry is on PATH"
    exit 0
fi

fetch() {
    local scratch
    scratch="$(mktemp -d)"
    chmod 755 "$scratch"
    ! can_apt || logged apt apt-get update -q
    (cd "$scratch" && apt-get download -q docker-registry) >>build/logs/apt.log 2>&1 ||
        die "docker-registry cannot be fetched" "see build/logs/apt.log"
    mkdir -p build/registry
    dpkg-deb -x "$scratch"/docker-registry_*.deb build/registry
    rm -r "$scratch"
}

timed "fetching docker-registry, for the tests" fetch
[ -x "$PROGRAM" ] || die "docker-registry has no $PROGRAM" "see build/registry"
