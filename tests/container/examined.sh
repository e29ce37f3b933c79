# What the doctor says of the installed unit, and whether that is so. Sourced by `run`.
# shellcheck shell=bash disable=SC2016 # what stands in single quotes is for the machine's own shell

readonly EXAMINED=/etc/tilld/examined.toml

# The settings of the shop with one script more, to be looked at and not used: with_hook PROGRAM
with_hook() {
    script '
        { /opt/test/config.sh 8480; printf "[[hook]]\nname = \"looked-at\"\non = [\"paid\"]\nrun = [\"%s\"]\n" "$1"; } >"$2"' "$1" "$EXAMINED"
}

# Of the unit the doctor has a finding with this state and these words: unit_is STATE WORDS
unit_is() {
    # Its code is judged where it is asked for.
    { inside tilld --config "$EXAMINED" doctor --json || true; } | python3 -c '
import json, sys
found = [one for one in json.load(sys.stdin) if one["check"] == "unit"]
print(*found, sep="\n")
sys.exit(not any(one["state"] == sys.argv[1] and sys.argv[2] in one["told"] for one in found))' "$@"
}

# Lines of [Service] that a person adds to the unit; none takes them away.
edited() {
    script '
        own=/etc/systemd/system/tilld.service.d
        rm -f "$own/examined.conf"; mkdir -p "$own"
        [ $# = 0 ] || printf "[Service]\n%s\n" "$@" >"$own/examined.conf"
        systemctl daemon-reload' "$@"
}

# A drop-in of the package, put where README says.
dropped_in() {
    script '
        install -D -m 644 "/usr/share/tilld/drop-ins/$1.conf" /etc/systemd/system/tilld.service.d/examined.conf
        systemctl daemon-reload' "$1"
}

examined() {
    logged_in
    hold examined 'the doctor finds nothing to mend, for root' inside tilld doctor
    hold examined "and for tilld's user" script 'setpriv --reuid=tilld --regid=tilld --init-groups tilld doctor'
    with_hook /opt/test/ship.sh
    hold examined 'of the unit as it is installed it says that scripts are found, and where they may write' \
        unit_is ok 'finds all scripts; they may write to the state directory, to a /tmp of their own, and to nothing else'

    script 'install -m 755 /bin/true /home/shop/ship; chmod 755 /home/shop'
    with_hook /home/shop/ship
    hold examined 'a script in a home directory is fine' unit_is ok 'finds all scripts'
    hold examined 'and so it is' in_fence '' /home/shop/ship
    edited ProtectHome=yes
    hold examined 'a script in a home directory that the unit cannot see is named' \
        unit_is fail '`/home/shop/ship` is not there for tilld.service: ProtectHome=yes'
    hold examined 'and it is not there' script '! systemd-run --quiet --wait -p ProtectHome=yes test -e /home/shop/ship'
    hold examined 'the doctor ends with 16 then' ends_with 16 inside tilld --config "$EXAMINED" doctor
    edited ProtectHome=read-only
    hold examined 'with what it advises all is fine' unit_is ok 'finds all scripts'
    edited

    script 'install -m 755 /bin/true /tmp/ship'
    with_hook /tmp/ship
    hold examined 'a script in /tmp is named' unit_is fail '`/tmp/ship` is not there for tilld.service'
    hold examined 'and it is not there' refused_in_fence '' 'test -e /tmp/ship'

    script '
        install -m 755 /bin/true /usr/local/bin/node
        printf "#!/usr/bin/env node\n" >/opt/test/ship-node; chmod 755 /opt/test/ship-node'
    with_hook /opt/test/ship-node
    hold examined 'a script whose interpreter makes code is named' unit_is fail 'makes code as it runs'
    dropped_in jit
    hold examined 'with the drop-in jit it is fine' unit_is ok 'finds all scripts'
    dropped_in directory
    with_hook /opt/test/ship.sh
    hold examined 'the drop-in directory is told' unit_is ok 'and to /srv/shop/orders'
    edited
    script 'rm -f /usr/local/bin/node /opt/test/ship-node /tmp/ship /home/shop/ship "$1"' "$EXAMINED"
}

# ends_with CODE COMMAND...
ends_with() {
    local wanted=$1 ended=0
    shift
    "$@" || ended=$?
    same "$ended" "$wanted"
}
