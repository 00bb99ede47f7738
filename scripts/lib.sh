# What the set-up scripts share. Sourced, not run.

export DEBIAN_FRONTEND=noninteractive
# A root shell that is not a login shell may lack these; dockerd, mkfs and iptables are there.
export PATH="$PATH:/usr/sbin:/sbin"

# say TEXT: one line of progress, on stderr like all that is not a result.
say() {
    printf 'setup: %s\n' "$*" >&2
}

# die WHAT MEND: one line that names what is missing and how to mend it.
die() {
    printf 'setup: %s (%s)\n' "$1" "$2" >&2
    exit 2
}

# timed TEXT COMMAND…: run a step, and say what it is and how long it took.
timed() {
    local text="$1" start=$SECONDS
    shift
    say "$text …"
    "$@"
    say "$text: $((SECONDS - start)) s"
}

can_apt() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null
}

# logged NAME COMMAND…: run a command with its output in build/logs/NAME.log, whose end is shown where it fails.
logged() {
    local name="$1" log="build/logs/$1.log"
    shift
    mkdir -p build/logs
    printf '$ %s\n' "$*" >>"$log"
    if ! "$@" </dev/null >>"$log" 2>&1; then
        tail -n 20 "$log" >&2
        die "$name failed" "see the lines above, or all of $log"
    fi
}

# apt_install PACKAGE…: install from the distribution, with fresh lists.
apt_install() {
    logged apt apt-get update -q
    logged apt apt-get install -y -q --no-install-recommends "$@"
}
