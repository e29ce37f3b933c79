# Upgraded, several shops, removed and purged. Sourced by `run`.
# shellcheck shell=bash disable=SC2016 # what stands in single quotes is for the machine's own shell

upgraded() {
    local before
    before=$(main_pid)
    knock 100 5
    hold upgraded 'a package of a higher version is put over it' script '
        dpkg -i /opt/test/tilld-2.deb
        test "$(dpkg-query -f "\${Version}" -W tilld)" = 0.0.0-2'
    wait_for_jobs
    hold upgraded 'the service was started anew and is well' anew "$before"
    hold upgraded "meanwhile: $(judged 100 100 || true)" judged 100 100
    hold upgraded 'settings, ledger and what was enabled stay' script '
        grep -q 127.0.0.1:8490 /etc/tilld/config.toml
        test "$(systemctl is-enabled tilld.service)" = enabled
        test "$(sqlite3 -readonly /var/lib/tilld/ledger.db "select outcome from invoices where order_id = '"'first'"'")" = paid'
    hold upgraded 'an order is paid and shipped' pay_and_ship after-upgrade
}

shops() {
    local name port=8480
    for name in tea ink; do
        port=$((port + 1))
        hold shops "$name: started as README says" script '
            systemd-sysusers --inline "u tilld-$1 - \"tilld of $1\" /var/lib/tilld-$1" "g tilld-$1-clients -"
            useradd -m "$1-shop"; usermod -aG "tilld-$1-clients" "$1-shop"
            sed "s|/var/lib/tilld/|/var/lib/tilld-$1/|" /opt/test/ship.sh >"/opt/test/ship-$1.sh"; chmod 755 "/opt/test/ship-$1.sh"
            /opt/test/config.sh "$2" "$1" | sed "s|ship.sh|ship-$1.sh|" >"/etc/tilld/$1.toml"
            systemctl -q enable --now "tilld-control@$1.socket" "tilld@$1"
            test "$(systemctl is-active "tilld@$1")" = active
            test "$(stat -c "%U:%G %a" "/var/lib/tilld-$1")" = "tilld-$1:tilld-$1 750"' "$name" "$port"
        hold shops "$name: logs in" inside setpriv --reuid="tilld-$name" --regid="tilld-$name" --init-groups \
            /opt/test/login.sh --config "/etc/tilld/$name.toml"
        hold shops "$name: an order is paid and shipped" shop_ships "$name"
    done
    hold shops 'none reads the other ledger or uses the other socket' script '
        ! setpriv --reuid=tilld-tea --regid=tilld-tea --init-groups cat /var/lib/tilld-ink/ledger.db
        ! setpriv --reuid=tilld-tea --regid=tilld-tea --init-groups cat /var/lib/tilld/ledger.db
        ! setpriv --reuid=tea-shop --regid=tea-shop --init-groups \
            curl -fsS --unix-socket /run/tilld-ink/control.sock http://tilld/v1/status
        setpriv --reuid=tea-shop --regid=tea-shop --init-groups \
            curl -fsS --unix-socket /run/tilld-tea/control.sock http://tilld/v1/status'
    hold shops 'none has the orders of the other' script '
        for one in tea ink; do
            test "$(sqlite3 -readonly "/var/lib/tilld-$one/ledger.db" "select group_concat(order_id) from invoices")" = "of-$one"
        done'
    hold shops 'its sandbox is judged as that of the one' script '
        systemd-analyze security --no-pager --threshold=15 tilld@tea.service'
    hold shops 'systemd listens for one on a Unix socket, which the proxy uses' script '
        systemctl stop tilld@tea
        systemctl -q enable --now tilld@tea.socket && systemctl start tilld@tea
        test "$(curl -s -m 10 -o /dev/null -w "%{http_code}" --unix-socket /run/tilld-tea/notifications.sock \
            --json "{\"id\": \"nobody\", \"status\": \"new\"}" http://tilld/n/nobody)" = 401'
}

shop_ships() {
    local order=of-$1
    inside setpriv --reuid="$1-shop" --regid="$1-shop" --init-groups /opt/test/order.sh "$order" "$1" &&
        inside /opt/test/order.sh --pay "$order" && within 15 shipped "$order" "$1"
}

removed() {
    hold removed 'the package goes; settings, ledger and login stay' script '
        dpkg -r tilld
        test ! -e /usr/bin/tilld && test ! -e /usr/lib/systemd/system/tilld.service
        test "$(systemctl is-active tilld.service)" != active && test "$(systemctl is-active tilld@tea)" != active
        test -s /etc/tilld/config.toml && test -s /var/lib/tilld/ledger.db && test -s /var/lib/tilld/secret/credentials'
    hold removed 'installed again, it goes on where it was, and so do the other shops' script '
        dpkg -i /opt/test/tilld-2.deb
        test "$(systemctl is-enabled tilld.service)" = enabled
        for link in /etc/systemd/system/*.wants/tilld*; do
            test "$(systemctl is-active "${link##*/}")" = active || { echo "$link"; exit 1; }
        done
        test ! -e /run/tilld.installed-again'
    hold removed 'an order is paid and shipped' pay_and_ship after-remove
}

purged() {
    hold purged 'purge leaves what a tilld that was put there by hand may use' script '
        : >/usr/local/bin/tilld
        dpkg -P tilld
        test -s /var/lib/tilld/ledger.db
        rm -f /usr/local/bin/tilld
        dpkg -i /opt/test/tilld-2.deb'
    hold purged 'purge removes settings, ledger, login and what was enabled' script '
        dpkg -P tilld
        for gone in /usr/bin/tilld /etc/tilld/config.toml /var/lib/tilld /run/tilld /usr/share/tilld \
            /usr/lib/systemd/system/tilld.service; do
            test ! -e "$gone"
        done
        for unit in /etc/systemd/system/*.wants/*; do
            case $unit in
            */tilld@* | */tilld-control@*) ;;
            */tilld*) echo "$unit"; exit 1 ;;
            esac
        done
        test "$(dpkg-query -f "\${Status}" -W tilld 2>/dev/null)" != "install ok installed"'
    hold purged 'what a person made stays: the other shops and their settings' script '
        test -s /var/lib/tilld-tea/ledger.db && test -s /etc/tilld/tea.toml'
    hold purged 'installed once more, it is as on the first day' script '
        dpkg -i /opt/test/tilld-2.deb
        test "$(stat -c "%U:%G %a" /var/lib/tilld)" = "tilld:tilld 750" && test -z "$(ls /var/lib/tilld)"
        test "$(systemctl is-enabled tilld.service)" = disabled
        grep -q "^state_dir = \"/var/lib/tilld\"" /etc/tilld/config.toml && ! grep -q 8490 /etc/tilld/config.toml'
    hold purged 'and serves once it has its settings' script '
        /opt/test/config.sh 8480 >/etc/tilld/config.toml
        systemctl start tilld && test "$(systemctl is-active tilld)" = active
        setpriv --reuid=tilld --regid=tilld --init-groups /opt/test/login.sh
        test "$(sqlite3 -readonly /var/lib/tilld/ledger.db "select count(*) from invoices")" = 0'
}
