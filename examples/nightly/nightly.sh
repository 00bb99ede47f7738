#!/bin/sh
# One night of cab, for a timer or a CI job: what an earlier night left unfinished, then tonight's sweep; each is
# compared with the good nights before it.
#
#     nightly.sh run SPEC       go on with what is left, then run SPEC as nightly-<date>
#     nightly.sh resume SPEC    only go on with what is left, as after a reboot
#
# Exit codes: 0 every cell has ended; 1 some still end in an error that is not the agent's, after all tries; 3 the
# night is worse than those before, or too little of it came to a result; 2 (or another) a person has to mend
# something; 130 stopped, and the next call goes on.
set -u

cab=${NIGHTLY_CAB:-.venv/bin/cab}
results=${NIGHTLY_RESULTS:-results}
tries=${NIGHTLY_TRIES:-3}             # resumes after infrastructure errors
pause=${NIGHTLY_PAUSE:-900}           # seconds before each of them
overlap=${NIGHTLY_OVERLAP:-43200}     # seconds to wait for a night that is still at work
baseline=${NIGHTLY_BASELINE:-last-good:5}  # what a night is compared with

verb=${1-}
spec=${2-}
case $verb in
    run | resume) ;;
    *) spec= ;;
esac
if [ -z "$spec" ]; then
    echo "nightly: usage: nightly.sh run|resume SPEC" >&2
    exit 2
fi
# Fixed before any waiting: a night keeps the date on which it was due.
tonight=nightly-$(date -u +%Y%m%d)
current=$results/nightly.current
child=
stopped=

# The first signal lets cab finish the cells under way, the second stops them; the shell waits for cab either way.
trap 'stopped=1; [ -z "$child" ] || kill -TERM "$child" 2>/dev/null' TERM INT

# Run a command; its exit code is in $code. A signal ends `wait`, not the command.
in_front() {
    "$@" &
    child=$!
    [ -z "$stopped" ] || kill -TERM "$child"
    wait "$child"
    code=$?
    while kill -0 "$child" 2>/dev/null; do
        wait "$child"
        code=$?
    done
    child=
    # 143: ended by the signal before it could heed it.
    if [ -n "$stopped" ] && [ "$code" = 143 ]; then
        code=130
    fi
}

# Compare the night $1 with the baseline, and keep what is said beside its cells. $code, that of the sweep, becomes
# 3 where the night is worse.
gate() {
    swept=$code
    in_front "$cab" gate --baseline "$baseline" --candidate "$1" --keep \
        --junit "$results/$1/gate.xml" --markdown "$results/$1/gate.md" -r "$results"
    case $code in
        0) code=$swept ;;
        1) code=3 ;;
    esac
}

# Bring the night $1 to its end with the cab command that follows; its exit code is in $code.
night() {
    id=$1
    shift
    printf '%s\n' "$id" >"$current.new" && mv "$current.new" "$current" || exit 2
    in_front "$cab" "$@" -r "$results"
    left=$tries
    while [ "$code" = 1 ] && [ "$left" -gt 0 ]; do
        left=$((left - 1))
        echo "nightly: $id: some cells ended in an infrastructure error; again in $pause s" >&2
        in_front sleep "$pause"
        if [ -n "$stopped" ]; then
            code=130
            return
        fi
        in_front "$cab" sweep resume "$id" -r "$results"
    done
    case $code in
        0 | 1)
            gate "$id"
            # Stopped before it was compared: the next call goes on with that.
            [ "$code" = 130 ] || rm -f "$current"
            ;;
    esac
}

mkdir -p "$results" && exec 9>"$results/nightly.lock" || exit 2
in_front flock -w "$overlap" 9
if [ -n "$stopped" ]; then
    exit 130
elif [ "$code" != 0 ]; then
    echo "nightly: another night is at work and does not end; $tonight is not run" >&2
    exit 2
fi

status=0
unfinished=$(cat "$current" 2>/dev/null)
if [ -n "$unfinished" ] && [ -f "$results/$unfinished/sweep.json" ]; then
    if [ "$verb" = resume ] || [ "$unfinished" != "$tonight" ]; then
        night "$unfinished" sweep resume "$unfinished"
        status=$code
        if [ "$status" = 130 ]; then
            exit 130
        fi
    fi
fi
if [ "$verb" = resume ]; then
    exit "$status"
fi
if [ "$status" -gt 1 ]; then
    # An old night that cannot be gone on with must not hold up the nights after it.
    echo "nightly: $unfinished is given up" >&2
    printf '%s\n' "$unfinished" >>"$results/nightly.given-up"
fi

night "$tonight" sweep run "$spec" --id "$tonight"
if [ "$code" = 130 ] || [ "$code" -gt "$status" ]; then
    status=$code
fi
exit "$status"
