# The machine: its root, its boot and its end, commands inside it, and the table. Sourced by `run`.
# shellcheck shell=bash

rows=0
failed=0

# One line of the table: row ok|FAILED PART WHAT
row() {
    rows=$((rows + 1))
    [[ $1 == ok ]] || failed=$((failed + 1))
    printf '%-6s %-10s %s\n' "$@"
}

# Says whether a command succeeds: hold PART WHAT COMMAND... What a failing one printed stands below its line.
hold() {
    local part=$1 what=$2 said
    shift 2
    if said=$("$@" 2>&1); then
        row ok "$part" "$what"
    else
        row FAILED "$part" "$what"
        printf '%s\n' "$said" | tail -n 15 | sed 's/^/         | /'
    fi
}

# Succeeds when a command does within so many seconds, looking ten times a second: within SECONDS COMMAND...
within() {
    local until=$((SECONDS + $1))
    shift
    while ! "$@" >/dev/null 2>&1; do
        if ((SECONDS >= until)); then
            "$@"
            return
        fi
        sleep 0.1
    done
}

# Runs a command in the machine, as its root, for two minutes at most.
inside() {
    timeout 120 nsenter -t "$leader" -a -- "$@"
}

# The same with a script of sh, which ends at the first error.
script() {
    inside sh -euc "$1" sh "${@:2}"
}

# As another user of the machine: as_user NAME COMMAND... in its groups, with a working directory it may be in.
as_user() {
    local user=$1
    shift
    inside setpriv --reuid="$user" --regid="$user" --init-groups --reset-env -- env --chdir=/ "$@"
}

# A property of the service, or of another unit.
shown() {
    inside systemctl show -P "$1" "${2:-tilld.service}"
}

same() {
    [[ $1 == "$2" ]] || {
        echo "is: $1"
        echo "not: $2"
        return 1
    }
}

# Where packages come from: as told, else as this machine gets its own, if it is of the same release.
mirror() {
    local file
    if [[ -n ${DEBIAN_MIRROR:-} ]]; then
        echo "$DEBIAN_MIRROR"
        return
    fi
    for file in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list; do
        if grep -qs bookworm "$file"; then
            echo "$file"
            return
        fi
    done
}

# Unpacks a root, which is fetched the first time only.
make_root() {
    local kept=$PLACE/bookworm-${PACKAGES//,/+}.tar from=()
    if [[ ! -e $kept ]]; then
        mapfile -t from < <(mirror)
        rm -f "$PLACE/fetched.tar"
        mmdebstrap --quiet --variant=minbase --include="$PACKAGES" \
            --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/zoneinfo/right/*' \
            --customize-hook='rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*.bin' \
            bookworm "$PLACE/fetched.tar" "${from[@]}" >"$PLACE/fetch.log" 2>&1 || {
            tail -n 20 "$PLACE/fetch.log" >&2
            echo 'error: no root could be fetched' >&2
            exit 1
        }
        mv "$PLACE/fetched.tar" "$kept"
    fi
    rm -rf --one-file-system "$ROOT"
    mkdir -p "$ROOT"
    tar -xf "$kept" -C "$ROOT"
    : >"$ROOT/etc/machine-id"
    mkdir -p "$ROOT/opt/test"
    cp tests/container/inside/* "$ROOT/opt/test/"
    cp "$PLACE"/tilld-[12].deb "$ROOT/opt/test/"
}

# Starts systemd in it, in namespaces of its own, without a network but the loopback.
boot() {
    setsid systemd-nspawn -q -D "$ROOT" --register=no --keep-unit --private-network -b </dev/null >"$PLACE/boot.log" 2>&1 &
    nspawn=$!
    leader=
    if ! within 30 has_leader || ! within 60 is_up; then
        tail -n 20 "$PLACE/boot.log" >&2
        echo 'error: the machine does not boot' >&2
        kill "$nspawn"
        exit 1
    fi
}

# Its init is a child of nspawn's.
has_leader() {
    leader=$(pgrep -P "$nspawn" systemd) && [[ -n $leader ]]
}

is_up() {
    [[ $(inside systemctl is-system-running) == running ]]
}

# Powers it off, by force if need be, and removes what is left. Also the end of a run that was broken off.
shut() {
    local ended=$?
    trap - EXIT
    inside poweroff >/dev/null 2>&1 || true
    within 30 is_off || kill -KILL "$leader" "$nspawn" 2>/dev/null || true
    wait "$nspawn" 2>/dev/null || true
    [[ -n $keep ]] || rm -rf --one-file-system "$ROOT"
    exit "$ended"
}

is_off() {
    ! kill -0 "$nspawn" 2>/dev/null
}
