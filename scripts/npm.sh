#!/usr/bin/env bash
# Put files of one npm package where they are needed, each package checked by its hash (scripts/npm.lock). Nothing of
# it is run, and what it depends on is not fetched.
#
#   npm.sh asciinema-player   the player of recordings, into orchestrator/site/vendor; the wheel carries it
#   npm.sh axe-core           for tests: finds what bars people from a page, into build
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

NAME="${1:?the package}"
case "$NAME" in
    asciinema-player)
        PLACE=orchestrator/site/vendor
        FILES=(dist/bundle/asciinema-player.min.js dist/bundle/asciinema-player.css LICENSE)
        ;;
    axe-core)
        PLACE=build
        FILES=(axe.min.js LICENSE)
        ;;
    *) die "scripts/npm.sh knows no $NAME" "add it there and to scripts/npm.lock" ;;
esac
LOCKED="$(grep "^$NAME " scripts/npm.lock)"
read -r _ VERSION SHA512 <<<"$LOCKED"
STAMP="build/npm/$NAME"

there() {
    local file
    [ -f "$STAMP" ] && [ "$(cat "$STAMP")" = "$LOCKED ${FILES[*]}" ] || return 1
    for file in "${FILES[@]}"; do
        [ -f "$PLACE/$NAME/${file##*/}" ] || return 1
    done
}

fetch() {
    local scratch file
    scratch="$(mktemp -d)"
    # From a directory of its own: npm would read a package.json or an .npmrc that stands above.
    (cd "$scratch" && npm pack --silent --ignore-scripts "$NAME@$VERSION") >>build/logs/npm.log 2>&1 ||
        die "$NAME $VERSION cannot be fetched" "see build/logs/npm.log"
    printf '%s  %s\n' "$SHA512" "$scratch/$NAME-$VERSION.tgz" | sha512sum --check --status ||
        die "$NAME $VERSION is not what scripts/npm.lock says" "find out why before you change the hash there"
    tar -xzf "$scratch/$NAME-$VERSION.tgz" -C "$scratch" --no-same-owner "${FILES[@]/#/package/}"
    rm -rf "${PLACE:?}/$NAME"
    mkdir -p "$PLACE/$NAME" build/npm
    for file in "${FILES[@]}"; do
        install -m 644 "$scratch/package/$file" "$PLACE/$NAME/"
    done
    rm -r "$scratch"
    printf '%s\n' "$LOCKED ${FILES[*]}" >"$STAMP"
}

! there || exit 0
mkdir -p build/logs
if ! command -v npm >/dev/null && can_apt; then
    timed "installing npm" apt_install npm
fi
command -v npm >/dev/null || die "no npm, which fetches $NAME" "install npm (Debian, Ubuntu) or Node.js"
timed "fetching $NAME $VERSION" fetch
