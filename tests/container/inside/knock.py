"""knock.py ORDER COUNT SECONDS: so many notifications of an order, each newer than the last, over so long; four senders, a connection
for each. They are what the sandbox would send: right address, right token.

A sender that gets no whole answer asks once more, as every sender does. Prints how many were acknowledged at first, how many when
asked twice, how many never, the longest wait in milliseconds, and the newest time that was acknowledged.
"""

import json
import socket
import sys
import threading
import time
import urllib.request

ORDER, COUNT, SECONDS = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
SENDERS = 4

with urllib.request.urlopen("http://127.0.0.1:8491/state") as state:
    known = json.load(state, parse_float=str)["invoices"]
invoice = next(one for one in known if one["invoice"]["internalId"] == ORDER)
url = invoice["for_tests"]["notificationUrl"]
host, _, path = url.removeprefix("http://").partition("/")
address, _, port = host.partition(":")
begun_at = int(time.time()) + 1

lock = threading.Lock()
told = {"answered": 0, "twice": 0, "failed": 0}
longest = 0.0
newest = ""


def moment(number):
    """The time a notification tells of: one millisecond later for each."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(begun_at + number // 1000)) + f".{number % 1000:03}Z"


def request(number):
    body = dict(invoice["invoice"], updatedAt=moment(number))
    body = json.dumps(body).encode()
    head = [
        f"POST /{path} HTTP/1.1",
        f"Host: {host}",
        "Content-Type: application/json",
        "Connection: close",
        "X-Notification-Token: " + invoice["for_tests"]["notificationToken"],
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def ask(number):
    """True for a whole acknowledgement."""
    try:
        with socket.create_connection((address, int(port)), timeout=15) as one:
            one.sendall(request(number))
            answer = b""
            while part := one.recv(4096):
                answer += part
    except OSError:
        return False
    return answer.startswith(b"HTTP/1.1 200 ") and b"\r\n\r\n" in answer


def send(first):
    global longest, newest
    begun = time.monotonic()
    for number in range(first, COUNT, SENDERS):
        time.sleep(max(0.0, begun + number * SECONDS / COUNT - time.monotonic()))
        at = time.monotonic()
        word = "answered" if ask(number) else "twice" if ask(number) else "failed"
        with lock:
            told[word] += 1
            longest = max(longest, time.monotonic() - at)
            if word != "failed":
                newest = max(newest, moment(number))


senders = [threading.Thread(target=send, args=(first,)) for first in range(SENDERS)]
for one in senders:
    one.start()
for one in senders:
    one.join()
print(told["answered"], told["twice"], told["failed"], round(longest * 1000), newest)
