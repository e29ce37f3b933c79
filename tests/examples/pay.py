#!/usr/bin/env python3
"""pay.py SOCKET ORDER AMOUNT: opens an invoice, shows the requisites, waits for the money. Ends with 0 when it is paid."""
import http.client, json, socket, sys, time
from urllib.parse import quote


class Tilld(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("tilld", timeout=90)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def call(method, path, body=None):
    """One call: its status and its document. A 429 or 503 is retried after its Retry-After."""
    headers = {"Content-Type": "application/json", "Prefer": "wait=20"} if body else {}
    for last in (False, False, False, False, True):
        tilld = Tilld(SOCKET)
        try:
            tilld.request(method, path, json.dumps(body) if body else None, headers)
            answer = tilld.getresponse()
            text = answer.read()
        finally:
            tilld.close()
        if last or answer.status not in (429, 503):
            break
        time.sleep(int(answer.headers.get("Retry-After", 1)))
    try:
        return answer.status, json.loads(text)
    except ValueError:
        return answer.status, {"detail": text.decode()}


def refused(status, problem):
    """A problem document says what is wrong and what to do."""
    sys.exit(f"{status} {problem.get('error')}: {problem.get('detail')}; {problem.get('hint')}")


SOCKET, order, amount = sys.argv[1:]
no_answer = (OSError, http.client.HTTPException)
try:
    wish = {"order_id": order, "amount": amount, "currency": "RUB", "method": "SBP"}
    status, invoice = call("POST", "/v1/invoices", wish)
except no_answer as error:
    sys.exit(f"tilld does not answer at {SOCKET}: {error}")
if status == 202:
    print("not known yet whether the service opened it: show nothing, a notification may settle it", flush=True)
elif status < 300:
    requisites = json.dumps(invoice["requisites"], ensure_ascii=False)
    print(f"pay {invoice['amount_agreed']} {invoice['currency']} to {requisites} until {invoice['expire_at']}", flush=True)
elif status == 409 and invoice.get("invoice", {}).get("outcome") == "paid":
    print(f"order {order}: paid")  # The customer came back after paying.
    sys.exit(0)
else:
    refused(status, invoice)

# 202 is "not yet", and nothing answers while tilld restarts: retry, for a quarter of an hour.
until = time.monotonic() + 900
while time.monotonic() < until:
    try:
        status, invoice = call("GET", f"/v1/orders/{quote(order, safe='')}/wait?timeout=60")
    except no_answer:
        time.sleep(2)
        continue
    if status == 200:
        print(f"order {order}: {invoice['outcome']}")
        sys.exit(0 if invoice["outcome"] == "paid" else 1)
    if status != 202:
        refused(status, invoice)
    time.sleep(1)
sys.exit(f"order {order}: still open")
