# What the sandbox of the unit forbids, and the drop-ins that open it. Sourced by `run`.
# shellcheck shell=bash disable=SC2016 # what stands in single quotes is for the machine's own shell

# Runs a script of sh in the sandbox of the installed unit, with the drop-ins that are named, and prints what it says:
# in_fence 'DROP-INS' SCRIPT
in_fence() {
    script '
        unit=/run/systemd/system/fenced.service
        rm -rf "$unit" "$unit.d"; mkdir -p "$unit.d"
        printf "%s\n" "$2" >/run/fenced.sh
        # The unit, but that it runs something else and once.
        sed -e "s|^Type=.*|Type=oneshot|" -e "/^Restart/d" -e "/^Watchdog/d" -e "/^ExecReload/d" \
            -e "s|^ExecStart=.*|ExecStart=/bin/sh -eu /run/fenced.sh\nStandardOutput=file:/run/fenced.out|" /usr/lib/systemd/system/tilld.service >"$unit"
        for one in $1; do sed s/www-data/shop/ "/usr/share/tilld/drop-ins/$one.conf" >"$unit.d/$one.conf"; done
        systemctl daemon-reload
        rm -f /run/fenced.out
        ended=0; systemctl start fenced 2>/dev/null || ended=$?
        cat /run/fenced.out
        exit "$ended"' "$@"
}

refused_in_fence() {
    ! in_fence "$@"
}

# Prints nothing, and ends well.
quiet_in_fence() {
    local said
    said=$(in_fence "$@") && same "$said" ''
}

noisy_in_fence() {
    ! quiet_in_fence "$@"
}

fenced() {
    local other acts
    script '
        cp /usr/bin/id /opt/test/rooted; chmod 4755 /opt/test/rooted
        touch /var/tmp/probed; chmod 666 /var/tmp/probed
        mkdir -p /boot; systemd-run --quiet --unit=other --uid=shop sleep 600'
    other=$(shown MainPID other.service)
    in_fence '' "python3 /opt/test/probe.py $other" >"$PLACE/fenced" || true
    # The control: the same acts of root, without the sandbox.
    inside python3 /opt/test/probe.py "$other" >"$PLACE/unfenced" 2>&1 || true
    acts=$(sed -n 's/ acts$//p' "$PLACE/fenced")
    hold fenced "denied $(grep -c '^denied' "$PLACE/fenced") of ${acts:-?} forbidden acts in the sandbox" all_denied "$PLACE/fenced"
    hold fenced "the same acts without it: allowed $(grep -c '^allowed' "$PLACE/unfenced"); the machine itself denies root $(grep -c '^denied' "$PLACE/unfenced")" \
        most_allowed "$PLACE/unfenced"
    hold fenced 'PHP and its regular expressions work; pcre.jit=0 takes a warning off stderr' \
        quiet_in_fence '' 'php -r "exit(preg_match(\"/^a+(b|c)\\$/\", \"aaab\") ? 0 : 1);" 2>/run/tilld/warned
            grep -q "pcre.jit=0" /run/tilld/warned; rm /run/tilld/warned
            php -d pcre.jit=0 -r "exit(preg_match(\"/^a+(b|c)\\$/\", \"aaab\") ? 0 : 1);"'
    hold fenced 'nice warns and goes on' in_fence '' 'nice true'
    hold fenced 'no core files, as many files as connections may be set, and the umask are as the unit says' \
        in_fence '' 'test "$(ulimit -c)" = 0; test "$(ulimit -n)" = 16384; test "$(umask)" = 0027'
}

all_denied() {
    local acts
    acts=$(sed -n 's/ acts$//p' "$1")
    grep -v '^denied\|acts$' "$1" && return 1
    [[ $acts -ge 40 ]] && same "$(grep -c '^denied' "$1")" "$acts"
}

most_allowed() {
    grep '^denied\|^broken' "$1"
    [[ $(grep -c '^allowed' "$1") -ge 30 ]]
}

drop_ins() {
    # A function that is called often enough to be made into code.
    local jit='php -d opcache.enable_cli=1 -d opcache.jit=function -d opcache.jit_buffer_size=8M -r "
        function f(\$n) { return \$n < 2 ? \$n : f(\$n - 1) + f(\$n - 2); } exit(f(20) === 6765 ? 0 : 1);"'
    local names='python3 -c "import socket; socket.if_nameindex()"'
    local writes='echo x >/srv/shop/orders/x'
    script 'install -d -o shop -g shop -m 2770 /srv/shop/orders'
    hold drop_ins 'jit: PHP does not make code without it' noisy_in_fence '' "$jit"
    hold drop_ins 'jit: PHP makes code with it' quiet_in_fence jit "$jit"
    hold drop_ins 'network: interfaces cannot be listed without it' refused_in_fence '' "$names"
    hold drop_ins 'network: interfaces are listed with it' in_fence network "$names"
    hold drop_ins 'directory alone does not go before owner and mode' \
        refused_in_fence directory "$writes"
    hold drop_ins 'group alone does not make it writable' refused_in_fence group "$writes"
    pay tool-directory
    hold drop_ins 'a script that writes into a directory of the shop fails' within 15 has_failed tool-directory
    script '
        mkdir -p /etc/systemd/system/tilld.service.d
        cp /usr/share/tilld/drop-ins/directory.conf /etc/systemd/system/tilld.service.d
        sed s/www-data/shop/ /usr/share/tilld/drop-ins/group.conf >/etc/systemd/system/tilld.service.d/group.conf
        systemctl daemon-reload; systemctl restart tilld'
    hold drop_ins 'directory and group: it works when it is tried again' within 30 inside test -s /srv/shop/orders/tool-directory
}

# An attempt of the script ended as a failed one.
has_failed() {
    inside sh -c 'sqlite3 -readonly /var/lib/tilld/ledger.db "$1" | grep -q .' sh "select 1 from attempts
        join deliveries using (event_id, hook) where order_id = '$1' and hook = 'tools' and result glob 'exit [1-9]*'"
}
