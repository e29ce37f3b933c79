#!/bin/sh
# config.sh PORT [NAME]: the settings of a shop whose service is the sandbox of this machine. Silent invoices are asked for every
# two seconds, and failed scripts run again soon, since a test has no half hour.
set -eu
cat <<EOF
state_dir = "/var/lib/tilld${2:+-$2}"
[service]
url = "http://127.0.0.1:8490"
cabinet_url = "http://127.0.0.1:8490"
[listener]
listen = "127.0.0.1:$1"
public_url = "http://127.0.0.1:$1/n"
[statuses]
open = ["new", "waiting"]
paid = ["paid"]
[poller]
cadence_s = 1
schedule = [{ until_s = 1800, every_s = 2 }]
[outbox]
schedule_s = [0, 1, 1, 2, 2, 5, 5, 5]
[[hook]]
name = "ship"
on = ["paid"]
run = ["/opt/test/ship.sh"]
EOF
[ $# -gt 1 ] || cat <<EOF
[[hook]]
name = "tools"
on = ["paid"]
run = ["/opt/test/tools.sh"]
EOF
