#!/bin/sh
# pay.sh SOCKET ORDER AMOUNT: opens an invoice, shows the requisites, waits for the money. Ends with 0 when it is paid.
set -eu
socket=$1 order=$2 amount=$3
case $order$amount in '' | *[!A-Za-z0-9._-]*) echo "this script takes only plain order ids" >&2; exit 2 ;; esac
answer=$(mktemp) || exit 1
trap 'rm -f "$answer"' EXIT

# One call: sets `status`, leaves the document in the file. A 429 or 503 is retried after its Retry-After.
call() {
    status=$(curl --silent --show-error --unix-socket "$socket" --max-time 90 --retry 5 --retry-max-time 60 \
        --output "$answer" --write-out '%{http_code}' "$@") || return 1
}
# The first match is tilld's: the service's own object, which may have the name too, follows. jq: jq -r ".$1" "$answer"
text() { grep -o "\"$1\":\"[^\"]*\"" "$answer" | head -n 1 | cut -d '"' -f 4; }
# Name and value of each, without JSON's quotes and braces.
requisites() { grep -o '"requisites":{[^}]*}' "$answer" | sed 's/^[^{]*{//; s/}$//; s/","/, /g; s/":"/ /g; s/"//g'; }
# A problem document says what is wrong and what to do.
refused() { echo "$status $(text error): $(text detail); $(text hint)" >&2; exit 1; }

call --header 'Prefer: wait=20' --data "{\"order_id\": \"$order\", \"amount\": \"$amount\", \"currency\": \"RUB\", \"method\": \"SBP\"}" \
    http://tilld/v1/invoices || exit 1
case $status in
200 | 201) echo "pay $(text amount_agreed) $(text currency) to $(requisites) until $(text expire_at)" ;;
202) echo "not known yet whether the service opened it: show nothing, a notification may settle it" ;;
409) # The customer came back after paying.
    [ "$(text outcome)" = paid ] || refused
    echo "order $order: paid"
    exit
    ;;
*) refused ;;
esac

# 202 is "not yet", and nothing answers while tilld restarts: retry, for a quarter of an hour.
until=$(($(date +%s) + 900))
while [ "$(date +%s)" -lt "$until" ]; do
    call "http://tilld/v1/orders/$order/wait?timeout=60" || { sleep 2; continue; }
    case $status in
    202) sleep 1 ;;
    200)
        echo "order $order: $(text outcome)"
        [ "$(text outcome)" = paid ]
        exit
        ;;
    *) refused ;;
    esac
done
echo "order $order: still open" >&2
exit 1
