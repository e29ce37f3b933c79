#!/bin/sh
# What fulfilment is written with, each for the order that is named after it: sh, PHP, Python, curl to this machine, and files in
# a directory of the shop.
set -eu
done=/var/lib/tilld/tools
case $TILLD_ORDER_ID in
tool-sh)
    # Its own directory, the private /tmp, owner and time kept.
    grep '"order_id": *"tool-sh"' >document
    cp -p document /tmp/document
    grep -q tool-sh /tmp/document
    ;;
tool-php)
    # Regular expressions of PHP make code as they go, unless they may not.
    # shellcheck disable=SC2016 # it is PHP that reads its variables
    php -r '$d = json_decode(file_get_contents("php://stdin"), true, 16, JSON_BIGINT_AS_STRING);
        preg_match("/^[a-z]+-(php)$/", $d["invoice"]["order_id"], $m) || exit(3);
        is_numeric(getenv("TILLD_AMOUNT")) || exit(4);' </dev/stdin
    ;;
tool-python)
    python3 -c 'import json, sys, subprocess, sqlite3, decimal, os, threading
document = json.load(sys.stdin, parse_float=decimal.Decimal)
assert document["invoice"]["order_id"] == "tool-python"
subprocess.run(["true"], check=True)
worker = threading.Thread(target=print); worker.start(); worker.join()
print(sqlite3.connect("file:/var/lib/tilld/ledger.db?mode=ro", uri=True).execute("select count(*) from invoices").fetchone())'
    ;;
tool-curl) curl -fsS -o /dev/null http://localhost:8491/state ;;
tool-slow)
    touch /var/lib/tilld/slow-runs
    # Long enough for a stop to come in between.
    sleep 3
    ;;
tool-directory) cat >"/srv/shop/orders/$TILLD_ORDER_ID" ;;
*) exit 0 ;;
esac
echo "$TILLD_ORDER_ID" >>"$done"
