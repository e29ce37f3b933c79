//! The fulfilment script of a demo and of a scenario, commented so that it can be read as an example.

/// A fulfilment script as a shop may have it.
pub(in crate::cli) const FULFIL_SCRIPT: &str = r#"#!/bin/sh
# Runs once an order is paid. Here a line in a log stands for handing the goods over.
#
# What tilld gives it: short facts in TILLD_* variables, the whole story as one JSON
# document on standard input. What it says to tilld is its exit code:
#   0           done
#   75          not now, try again
#   65, 77, 78  never, a person must look
#   any other   try again by the schedule
#
# It may be run twice for one event: when the machine stops between the work and the
# note that it is done. TILLD_EVENT_ID is the same every time, TILLD_ATTEMPT counts.
set -eu
log=$1
if grep -q -s -F "event=$TILLD_EVENT_ID " "$log"; then
    echo "order $TILLD_ORDER_ID was handed over before"
    exit 0
fi
printf 'order=%s amount=%s %s event=%s attempt=%s\n' \
    "$TILLD_ORDER_ID" "$TILLD_AMOUNT" "$TILLD_CURRENCY" "$TILLD_EVENT_ID" "$TILLD_ATTEMPT" >>"$log"
echo "order $TILLD_ORDER_ID is handed over"
"#;
