// A receiver as it is commonly written with Express: one process, one connection, a commit per request. It is started as
// `node app.js PORT`, with the file of its ledger in PEER_LEDGER.
'use strict';

const { timingSafeEqual } = require('node:crypto');
const Database = require('better-sqlite3');
const express = require('express');

const ledger = new Database(process.env.PEER_LEDGER);
ledger.pragma('journal_mode = WAL');
ledger.pragma('synchronous = FULL');

const secretOf = ledger.prepare('SELECT secret FROM invoice WHERE ref = ?').pluck();
const move = ledger.prepare(
  'UPDATE invoice SET status = ?, amount = ?, currency = ?, updated_at = ?, revision = revision + 1 WHERE ref = ?',
);
const tell = ledger.prepare('INSERT INTO event (ref, status, body) VALUES (?, ?, ?)');
const owe = ledger.prepare('INSERT INTO outbox (event) VALUES (?)');

const record = ledger.transaction((ref, told, body) => {
  move.run(told.status, told.amount, told.currency, told.updatedAt, ref);
  const { lastInsertRowid } = tell.run(ref, told.status, body);
  owe.run(lastInsertRowid);
});

function matches(secret, token) {
  const known = Buffer.from(secret);
  const shown = Buffer.from(token);
  return known.length === shown.length && timingSafeEqual(known, shown);
}

const app = express();
app.use(express.text({ type: 'application/json' }));
app.post('/n/:ref', (request, response) => {
  const { ref } = request.params;
  const token = (request.get('authorization') ?? '').replace(/^Bearer /, '');
  const secret = secretOf.get(ref);
  if (secret === undefined || !matches(secret, token)) {
    response.status(401).end();
    return;
  }
  record.immediate(ref, JSON.parse(request.body), request.body);
  response.status(200).end();
});
app.listen(Number(process.argv[2]), '127.0.0.1');
