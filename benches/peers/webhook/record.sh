#!/bin/sh
# A receiver as it is commonly written for `webhook`: a script that records a notification with sqlite3, and whose end is
# waited for before the answer (`include-command-output-in-response`). The file of its ledger is in PEER_LEDGER. Arguments:
# the ref, the Authorization header, status, amount, currency, updatedAt, the body.
set -eu

# A text of SQL, in $quoted. Without a process of its own.
quote() {
    rest=$1 quoted=
    while :; do
        case $rest in
        *\'*) quoted="$quoted${rest%%\'*}''" rest=${rest#*\'} ;;
        *) break ;;
        esac
    done
    quoted="'$quoted$rest'"
}

quote "$1" && ref=$quoted
quote "${2#Bearer }" && token=$quoted
quote "$3" && status=$quoted
quote "$4" && amount=$quoted
quote "$5" && currency=$quoted
quote "$6" && updated_at=$quoted
quote "$7" && body=$quoted

# An unknown ref or a wrong token changes no row: then the outbox would owe an event that is none, which its column refuses,
# and the script fails with nothing recorded.
sqlite3 -bail -batch -cmd '.timeout 60000' "$PEER_LEDGER" >/dev/null <<SQL
PRAGMA synchronous = FULL;
BEGIN IMMEDIATE;
UPDATE invoice SET status = $status, amount = $amount, currency = $currency, updated_at = $updated_at,
    revision = revision + 1
WHERE ref = $ref AND secret = (SELECT secret FROM invoice WHERE ref = $ref AND secret = $token);
INSERT INTO event (ref, status, body) SELECT ref, $status, $body FROM invoice WHERE ref = $ref AND changes() = 1;
INSERT INTO outbox (event) VALUES (CASE WHEN changes() = 1 THEN last_insert_rowid() END);
COMMIT;
SQL
