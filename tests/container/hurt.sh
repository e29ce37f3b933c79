# Killed, reloaded, stopped dead, and started anew under load. Sourced by `run`.
# shellcheck shell=bash disable=SC2016 # what stands in single quotes is for the machine's own shell

main_pid() {
    shown MainPID
}

# It runs as another process than that one, and is ready.
anew() {
    local now
    now=$(main_pid)
    [[ $now != "$1" && $now != 0 && $(shown ActiveState) == active ]]
}

kill_and_wait() {
    local before
    before=$(main_pid)
    inside systemctl kill -s KILL tilld.service && within 15 anew "$before"
}

all_shipped() {
    local order
    for order in "$@"; do
        shipped "$order" || {
            echo "$order is not shipped"
            return 1
        }
    done
}

killed() {
    local orders=() order before
    before=$(shown NRestarts)
    for order in k{1..20}; do
        orders+=("$order")
        as_user shop /opt/test/order.sh "$order" >/dev/null || true
    done
    for order in "${orders[@]}"; do
        inside /opt/test/order.sh --pay "$order" &
        [[ $order != k*[05] ]] || kill_and_wait || true
    done
    wait_for_jobs
    hold killed "it was killed 4 times while 20 orders were paid, and started anew each time" \
        test $(($(shown NRestarts) - before)) -ge 4
    hold killed 'each order is shipped' within 30 all_shipped "${orders[@]}"
    hold killed 'the ledger is whole' script '
        test "$(sqlite3 -readonly /var/lib/tilld/ledger.db "pragma integrity_check")" = ok'
}

# All that was begun here but the machine itself.
wait_for_jobs() {
    local job
    for job in $(jobs -rp); do
        [[ $job == "$nspawn" ]] || wait "$job" || true
    done
}

# How much the service has told so far, and whether it told something since then: told_since MARK WORDS.
told() {
    inside journalctl -q -o cat -u tilld | wc -l
}

told_since() {
    inside journalctl -q -o cat -u tilld | tail -n "+$(($1 + 1))" | grep -- "$2" >/dev/null
}

reloaded() {
    local before mark
    before=$(main_pid)
    mark=$(told)
    inside sed -i '1i log_level = "debug"' /etc/tilld/config.toml
    hold reloaded 'systemctl reload comes back' inside systemctl reload tilld
    hold reloaded 'the process stays, and serves' serves_as "$before"
    hold reloaded 'the new settings count: lines of level debug come' debug_lines "$mark"
    mark=$(told)
    inside sed -i 's/^log_level = .*/log_level = "loud"/' /etc/tilld/config.toml
    inside systemctl reload tilld >/dev/null 2>&1 || true
    hold reloaded 'settings that are wrong are refused, by name' within 10 told_since "$mark" log_level
    hold reloaded 'the old ones stay: it is the same process, and serves' serves_as "$before"
    inside sed -i '1d' /etc/tilld/config.toml
    inside systemctl reload tilld >/dev/null 2>&1 || true
    within 10 serves_as "$before" >/dev/null || inside systemctl restart tilld
}

# What is told of a payment at level debug and at no other, with its level as a word or as the journal's own.
debug_lines() {
    pay "debug-$RANDOM" && within 10 has_debug_lines "$1"
}

has_debug_lines() {
    told_since "$1" DEBUG || inside journalctl -q -o cat -u tilld -p debug..debug | grep . >/dev/null
}

serves_as() {
    same "$(main_pid)" "$1" && same "$(knocked)" 401
}

# What a notification for nobody is answered: knocked [SECONDS]
knocked() {
    inside curl -s -m "${1:-10}" -o /dev/null -w '%{http_code}' --json '{"id": "nobody", "status": "new"}' http://127.0.0.1:8480/n/nobody
}

stopped() {
    pay tool-slow
    hold stopped 'a script is running' within 15 inside test -e /var/lib/tilld/slow-runs
    hold stopped 'systemctl stop lets it finish' script '
        systemctl stop tilld.service 2>/dev/null
        grep -qx tool-slow /var/lib/tilld/tools
        test "$(systemctl show -P Result tilld)" = success && test "$(systemctl show -P ExecMainStatus tilld)" = 0'
    script 'systemctl start tilld.service'
    hold stopped 'it is not run again' script '
        test "$(sqlite3 -readonly /var/lib/tilld/ledger.db "select count(*) from deliveries
            where order_id = '"'tool-slow'"' and state = '"'done'"'")" = 2
        test "$(grep -cx tool-slow /var/lib/tilld/tools)" = 1'
}

watched() {
    local before mark
    script '
        mkdir -p /run/systemd/system/tilld.service.d
        printf "[Service]\nWatchdogSec=2\n" >/run/systemd/system/tilld.service.d/soon.conf
        systemctl daemon-reload && systemctl restart tilld'
    before=$(main_pid)
    sleep 5
    hold watched 'one that is well is left alone over two times of the watchdog' serves_as "$before"
    before=$(main_pid)
    mark=$(told)
    script 'kill -STOP "$1"' "$before"
    hold watched 'one that stands still is killed and started anew within 15 s' within 15 anew "$before"
    hold watched 'by the watchdog' told_since "$mark" 'Watchdog timeout'
    hold watched 'and is well again' within 5 serves_as "$(main_pid)"
    # Should nobody have ended it.
    script 'kill -CONT "$1" 2>/dev/null || true' "$before"
    script 'rm /run/systemd/system/tilld.service.d/soon.conf; systemctl daemon-reload; systemctl restart tilld'
}

# Begins to send so many notifications of the first order over so many seconds.
knock() {
    inside python3 /opt/test/knock.py first "$1" "$2" >"$PLACE/knocked" &
}

# What came of them: judged COUNT LEAST_AT_FIRST. So many were acknowledged, so many of them when sent once, and the newest of
# those is in the ledger.
judged() {
    local answered twice none longest newest
    read -r answered twice none longest newest <"$PLACE/knocked"
    echo "acknowledged $answered, when sent twice $twice, failed $none of $1, longest $longest ms"
    [[ $none == 0 && $((answered + twice)) == "$1" && $answered -ge $2 ]] || return 1
    as_user shop tilld --socket /run/tilld/control.sock --json invoice show first | python3 -c '
import json, sys
stored = json.load(sys.stdin)["service"]["updatedAt"]
sys.exit(None if stored >= sys.argv[1] else f"stored {stored}, acknowledged {sys.argv[1]}")' "$newest"
}

sockets() {
    local kills before
    hold sockets 'systemd listens in its place' script '
        systemctl stop tilld.service
        systemctl -q enable --now tilld.socket && systemctl start tilld.service
        test "$(systemctl is-active tilld.socket)" = active'
    before=$(shown NRestarts)
    knock 250 14
    for ((kills = 0; kills < 8; kills++)); do
        # In the middle of the work, not while it begins: what it was about to answer is asked for once more.
        sleep 0.5
        kill_and_wait || true
    done
    wait_for_jobs
    hold sockets "killed $(($(shown NRestarts) - before)) times: $(judged 250 0 || true)" judged 250 225
    hold sockets 'it was killed so often indeed' test $(($(shown NRestarts) - before)) -ge 8
    knock 150 6
    for ((kills = 0; kills < 4; kills++)); do
        inside systemctl restart tilld.service || true
    done
    wait_for_jobs
    hold sockets "started anew 4 times: $(judged 150 150 || true)" judged 150 150
    hold sockets 'it goes on' pay_and_ship after-sockets
    # Where it does not take the socket over, the later parts are looked at without.
    [[ $(knocked) == 401 ]] || script 'systemctl -q disable --now tilld.socket; systemctl restart tilld'
}

pay_and_ship() {
    pay "$@" && within 15 shipped "$@"
}

# How often it was begun since then: starts_since MARK
starts_since() {
    inside journalctl -q -o cat -u tilld | tail -n "+$(($1 + 1))" | grep -c '^Starting tilld.service' || true
}

# Clients that do not wait for each other come all the time, until they are called off: knocking; called_off.
knocking() {
    script 'systemd-run --quiet --unit=knocking sh -c "while :; do
        curl -s -m 2 -o /dev/null http://127.0.0.1:8480/n/nobody & sleep 0.1; done"'
}

called_off() {
    script 'systemctl stop knocking 2>/dev/null || true'
}

# Behind a socket whoever knocks starts it, with settings that are wrong as well.
slowed() {
    local mark starts
    logged_in
    hold slowed 'systemd listens, and the settings are wrong' script '
        systemctl stop tilld.service 2>/dev/null
        systemctl -q enable --now tilld.socket
        sed -i "1i log_level = \"loud\"" /etc/tilld/config.toml'
    # The control: what the line in the unit is for.
    script '
        mkdir -p /run/systemd/system/tilld.service.d
        printf "[Service]\nExecStopPost=\n" >/run/systemd/system/tilld.service.d/hasty.conf
        systemctl daemon-reload'
    mark=$(told)
    knocking
    within 25 starts_often "$mark" || true
    called_off
    starts=$(starts_since "$mark")
    hold slowed "without the wait in the unit it is begun over and over: $starts times" test "$starts" -gt 4
    script '
        rm /run/systemd/system/tilld.service.d/hasty.conf; systemctl daemon-reload
        # A socket is not begun beside its service.
        systemctl stop tilld.service tilld.socket 2>/dev/null
        systemctl reset-failed tilld.service tilld.socket 2>/dev/null || true
        systemctl start tilld.socket' || true
    mark=$(told)
    knocking
    sleep 25
    starts=$(starts_since "$mark")
    hold slowed "with it, while clients knock for 25 s: $starts times, 4 at most" test "$starts" -ge 2 -a "$starts" -le 4
    hold slowed 'each ended with the code of wrong settings' same "$(shown ExecMainStatus)" 10
    hold slowed 'systemd has not given up the socket' script '
        test "$(systemctl is-active tilld.socket)" = active && test "$(systemctl show -P Result tilld.socket)" = success'
    called_off
    inside sed -i 1d /etc/tilld/config.toml
    hold slowed 'once the settings are right the next request is answered' same "$(knocked 30)" 401
    hold slowed 'an order is paid and shipped' pay_and_ship after-slowed
}

starts_often() {
    (($(starts_since "$1") > 4))
}
