# Installing, starting, a first payment, scripts and readers. Sourced by `run`.
# shellcheck shell=bash disable=SC2016 # what stands in single quotes is for the machine's own shell

# Without these no other part can be looked at alone.
readonly NEEDED=(installed started)
readonly UNITS='tilld.service tilld.socket tilld-control.socket tilld@.service tilld@.socket tilld-control@.socket'

installed() {
    hold installed 'the package installs' inside dpkg -i /opt/test/tilld-1.deb
    hold installed 'user, group, directories and modes are as they should be' script '
        id tilld && getent group tilld-clients
        test "$(stat -c "%U:%G %a" /var/lib/tilld)" = "tilld:tilld 750"
        test "$(stat -c "%U:%G %a" /run/tilld)" = "tilld:tilld 755"
        test "$(stat -c "%U:%G %a" /etc/tilld/config.toml)" = "root:root 644"'
    hold installed 'pages, completions, licences, changelog and drop-ins are there, unchanged' script '
        for file in man/man1/tilld.1.gz man/man1/tilld-invoice-create.1.gz bash-completion/completions/tilld \
            zsh/vendor-completions/_tilld fish/vendor_completions.d/tilld.fish \
            doc/tilld/LICENSE-MIT doc/tilld/LICENSE-APACHE doc/tilld/copyright doc/tilld/changelog.gz doc/tilld/README.md doc/tilld/docs/backup.md doc/tilld/docs/reference/settings.md \
            tilld/drop-ins/directory.conf; do
            test -s "/usr/share/$file"
        done
        test -z "$(dpkg --verify tilld)"'
    hold installed 'nothing is enabled or started' script '
        for unit in tilld.service tilld.socket tilld-control.socket; do
            test "$(systemctl is-enabled "$unit")" = disabled
            test "$(systemctl is-active "$unit")" = inactive
        done'
    hold installed 'systemd finds nothing wrong with its units' script '
        cd /usr/lib/systemd/system
        for unit in $1; do
            said=$(systemd-analyze verify --man=no "$(echo "$unit" | sed s/@/@one/)" 2>&1) || :
            test -z "$(echo "$said" | grep tilld)" || { echo "$said"; exit 1; }
        done' "$UNITS"
    hold installed "its sandbox is judged at most 1.5: $(inside systemd-analyze security --no-pager tilld.service | sed -n 's/.*level for //p' | tr -dc '[:print:]')" \
        inside systemd-analyze security --no-pager --threshold=15 tilld.service
    hold installed 'without its two addresses it ends with 10, says so, and is not tried again' script '
        ! systemctl start tilld
        test "$(systemctl show -P ExecMainStatus tilld)" = 10
        test "$(systemctl show -P NRestarts tilld)" = 0
        test "$(systemctl is-failed tilld)" = failed
        journalctl -u tilld -o cat | grep -q "service.url. is not set"
        systemctl reset-failed tilld'
    hold installed 'the packaged settings want the two addresses and nothing else' inside env \
        TILLD_SERVICE__URL=https://service.example TILLD_LISTENER__PUBLIC_URL=https://shop.example/n tilld serve --check
}

started() {
    hold started 'the sandbox runs beside it' script '
        systemd-run --quiet --unit=sandbox --uid=nobody --working-directory=/tmp tilld sandbox --plain --seed 7
        for i in $(seq 100); do curl -fs -o /dev/null http://127.0.0.1:8491/state && exit; sleep .1; done; exit 1'
    # The users of a shop's machine: the shop, who may use the socket; a reader of the ledger; and somebody else.
    hold started 'it is enabled, starts, and is ready when systemctl comes back' script '
        useradd -m shop; useradd -m reader; useradd -m stranger
        usermod -aG tilld-clients shop; usermod -aG tilld reader
        /opt/test/config.sh 8480 >/etc/tilld/config.toml
        systemctl -q enable --now tilld-control.socket tilld.service
        test "$(systemctl is-active tilld)" = active
        test "$(curl -s -o /dev/null -w "%{http_code}" --json "{\"id\": \"nobody\", \"status\": \"new\"}" http://127.0.0.1:8480/n/nobody)" = 401'
}

# Opens an order and has it paid: pay ORDER [SHOP].
pay() {
    as_user "${2:+$2-}shop" /opt/test/order.sh "$@" >/dev/null && inside /opt/test/order.sh --pay "$1"
}

# The script of the hook did its work for an order.
shipped() {
    inside grep -qxF "$1" "/var/lib/tilld${2:+-$2}/shipped"
}

# For a part that is looked at alone.
logged_in() {
    script 'test -s /var/lib/tilld/secret/credentials ||
        setpriv --reuid=tilld --regid=tilld --init-groups /opt/test/login.sh' >/dev/null
}

paid() {
    hold paid 'it logs in' inside setpriv --reuid=tilld --regid=tilld --init-groups /opt/test/login.sh
    hold paid 'the shop opens an invoice over the control socket, the customer pays' pay first
    hold paid 'the notification is heard and the script runs' within 15 shipped first
    hold paid 'the shop is told' as_user shop tilld --socket /run/tilld/control.sock invoice wait first --timeout 10s
    hold paid 'somebody else may not use the socket' script '! setpriv --reuid=stranger --regid=stranger --init-groups \
        curl -fsS --unix-socket /run/tilld/control.sock http://tilld/v1/status'
}

credential() {
    hold credential 'a token of /etc/credstore does in the place of a login' script '
        install -d -m 700 /etc/credstore
        curl -fsS -d "{\"clientName\": \"credstore\"}" http://127.0.0.1:8491/tokens/issue |
            python3 -c "import json, sys; print(json.load(sys.stdin)[\"token\"])" >/etc/credstore/tilld.access-token
        chmod 600 /etc/credstore/tilld.access-token
        setpriv --reuid=tilld --regid=tilld --init-groups tilld logout
        systemctl restart tilld'
    hold credential 'an order is opened, paid and shipped with it' pay_and_ship by-credential
    script 'rm -r /etc/credstore; setpriv --reuid=tilld --regid=tilld --init-groups /opt/test/login.sh; systemctl restart tilld' >/dev/null 2>&1
    hold credential 'without the file nothing is wrong' pay_and_ship without-credential
}

# A script of a language did its work.
tool_done() {
    inside grep -qxF "tool-$1" /var/lib/tilld/tools
}

scripts() {
    local tool
    for tool in sh php python curl; do
        hold scripts "$tool works in the sandbox" pay_and tool_done "$tool"
    done
}

# pay_and CHECK TOOL
pay_and() {
    pay "tool-$2" && within 15 "$1" "$2"
}

# Reads the ledger as a program of another user: reads USER LANGUAGE.
reads() {
    local of=/var/lib/tilld/ledger.db what="select outcome from invoices where order_id = 'first'" said
    case $2 in
    sqlite3) said=$(as_user "$1" sqlite3 -readonly "$of" "$what") ;;
    python) said=$(as_user "$1" python3 -c "import sqlite3, sys
print(sqlite3.connect('file:' + sys.argv[1] + '?mode=ro', uri=True).execute(sys.argv[2]).fetchone()[0])" "$of" "$what") ;;
    php) said=$(as_user "$1" php -r '$db = new PDO("sqlite:" . $argv[1], null, null, [PDO::SQLITE_ATTR_OPEN_FLAGS => 1]);
        echo $db->query($argv[2])->fetchColumn();' "$of" "$what") ;;
    esac && same "$said" paid
}

all_read() {
    reads reader sqlite3 && reads reader python && reads reader php
}

readers() {
    hold readers 'a reader of the group reads with sqlite3, Python and PHP while it runs' all_read
    hold readers 'somebody else does not' script '! setpriv --reuid=stranger --regid=stranger --init-groups \
        sqlite3 -readonly /var/lib/tilld/ledger.db "select 1 from invoices"'
    inside systemctl -q stop tilld.service 2>/dev/null
    hold readers 'after a clean stop' all_read
    inside systemctl start tilld.service
    inside systemctl mask -q --runtime tilld.service
    inside systemctl kill -s KILL tilld.service
    hold readers 'after it was killed' all_read
    inside systemctl unmask -q --runtime tilld.service
    inside systemctl start tilld.service
}
