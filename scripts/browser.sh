#!/usr/bin/env bash
# What the tests of the site need beside cab: Debian's chromium, fonts (a machine without a screen has none) and
# axe-core. The tests drive it by Playwright, whose own browsers are not fetched. The build without a window takes
# half the processor time of the other, which does where it is all there is.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

PACKAGES=(chromium-headless-shell fonts-dejavu-core fonts-liberation)

if ! command -v chromium-headless-shell >/dev/null && can_apt; then
    timed "installing chromium" apt_install "${PACKAGES[@]}"
fi
command -v chromium-headless-shell >/dev/null || command -v chromium >/dev/null || die "no chromium, in which the site is tested" "install ${PACKAGES[*]} (Debian)"
scripts/npm.sh asciinema-player
scripts/npm.sh axe-core
