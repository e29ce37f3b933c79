#!/bin/sh
# order.sh ORDER [SHOP]: opens an invoice as the shop does, over the control socket. order.sh --pay ORDER: the customer pays it.
set -eu
if [ "$1" = --pay ]; then
    curl -fsS -o /dev/null -d '{"status": "paid"}' "http://127.0.0.1:8491/invoices/$2/status"
    exit
fi
exec tilld --socket "/run/tilld${2:+-$2}/control.sock" \
    invoice create --order "$1" --amount 10.00 --currency RUB --method SBP --json
