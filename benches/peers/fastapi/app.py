"""A receiver as it is commonly written with FastAPI: one process, one connection, a commit per request. It is started as
`uvicorn app:app`, with the file of its ledger in PEER_LEDGER."""

import hmac
import json
import os
import sqlite3

from fastapi import FastAPI, Request, Response

ledger = sqlite3.connect(os.environ["PEER_LEDGER"], isolation_level=None)
ledger.execute("PRAGMA journal_mode = WAL")
ledger.execute("PRAGMA synchronous = FULL")

app = FastAPI()


@app.post("/n/{ref}")
async def hear(ref: str, request: Request) -> Response:
    body = await request.body()
    token = request.headers.get("authorization", "").removeprefix("Bearer ")
    row = ledger.execute("SELECT secret FROM invoice WHERE ref = ?", (ref,)).fetchone()
    if row is None or not hmac.compare_digest(row[0].encode(), token.encode()):
        return Response(status_code=401)
    told = json.loads(body)
    ledger.execute("BEGIN IMMEDIATE")
    try:
        ledger.execute(
            "UPDATE invoice SET status = ?, amount = ?, currency = ?, updated_at = ?, revision = revision + 1"
            " WHERE ref = ?",
            (told["status"], told["amount"], told["currency"], told["updatedAt"], ref),
        )
        event = ledger.execute(
            "INSERT INTO event (ref, status, body) VALUES (?, ?, ?)",
            (ref, told["status"], body.decode()),
        ).lastrowid
        ledger.execute("INSERT INTO outbox (event) VALUES (?)", (event,))
        ledger.execute("COMMIT")
    except BaseException:
        ledger.execute("ROLLBACK")
        raise
    return Response(status_code=200)
