//! The rows of the table: what each does to the daemon, and what must be seen. `docs/reliability.md` shows these
//! rows; a test holds its table against this list.

/// A row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Its name, as an argument has it.
    pub(crate) id: &'static str,
    /// What is done.
    pub(crate) what: &'static str,
    /// What must be seen, else the row fails.
    pub(crate) bar: &'static str,
}

const fn row(id: &'static str, what: &'static str, bar: &'static str) -> Row {
    Row { id, what, bar }
}

/// All of them, in their order.
pub(crate) const ROWS: [Row; 22] = [
    row("R01", "`kill -9` under load", "lost 0; ready again ≤ 1 s"),
    row(
        "R02",
        "killed at its n-th write or sync of the ledger",
        "lost 0; every fault point met",
    ),
    row(
        "R03",
        "power loss: what was not synced is dropped, reordered, torn; of a first start names of files, too",
        "states with lost acks 0, damaged 0",
    ),
    row(
        "R05",
        "a sync fails once, and for good",
        "wrong 200s 0; lost 0, after power losses too; first 503, `/healthz` red, and first 200 afterwards ≤ 5 s",
    ),
    row(
        "R06",
        "disk full, then room",
        "lost 0; `/healthz` red; first 200 after room ≤ 5 s; no restart",
    ),
    row(
        "R07",
        "each sync takes 300 ms, beside 128 senders",
        "≥ 100 acks/s; none later than 15 s; lost 0",
    ),
    row(
        "R08",
        "no file descriptors left, and accepts that fail for want of one",
        "processor ≤ 20 %; asks ≤ 20 times a second; first 200 afterwards ≤ 1 s; lost 0",
    ),
    row(
        "R09",
        "a script holds the write lock: within the budget, then beyond it",
        "longest answer ≤ budget + 1 s; each 503 with Retry-After; lost 0",
    ),
    row(
        "R10",
        "a long reader under load; readers of another user while it runs, after a stop, after a kill",
        "told; log ≤ 15 MiB afterwards; readers failing 0",
    ),
    row(
        "R11",
        "ledger empty, cut by a page, header changed, foreign, of a newer schema, a directory",
        "exit 11 in ≤ 2 s with a hint; files changed 0",
    ),
    row(
        "R12",
        "its clock is taken from one of its threads, or while it answers: it panics, in the release binary",
        "the process ends with 17 in ≤ 1 s; of a request that request alone; lost 0; orders not handed over 0",
    ),
    row(
        "R13",
        "`kill -9` while scripts run",
        "missed 0, out of order 0, overlapping 0",
    ),
    row(
        "R21",
        "slow heads, slow bodies and answers nobody reads, beside an honest sender",
        "p99 ≤ 1 s; failures 0",
    ),
    row(
        "R22",
        "framing two readers may see differently, directly",
        "accepted 0 of those that must be refused; stored strangers 0",
    ),
    row(
        "R23",
        "requests beyond the limits",
        "the answer meant for each; ≤ 96 KiB read after it; memory grows ≤ 2 MiB",
    ),
    row(
        "R33",
        "TERM, INT, and TERM twice under load, with scripts running",
        "exit 0 in ≤ 8 s; lost 0; answers cut 0; runs unfinished 0",
    ),
    row(
        "R34",
        "its clock is three hours ahead while scripts fail, or at 1970 while orders are paid, and is corrected",
        "next attempts ≤ 18 s after; texts lost 0; told",
    ),
    row(
        "R35",
        "it stands still for longer than a script may take, while scripts end",
        "called late 0, run twice 0",
    ),
    row(
        "R36",
        "every secret searched for wherever the others must not be",
        "places found 0",
    ),
    row(
        "R37",
        "notifications without end, on connections that come and go",
        "memory grows ≤ 2 MiB from the second tenth to the last; descriptors no more than before; lost 0",
    ),
    row(
        "R43",
        "the WAL and its shared memory removed, renamed, replaced under load",
        "lost 0; acknowledged afterwards 0",
    ),
    row(
        "R44",
        "500 connections with bodies just under the limit, nested and flat, then of 20 KiB, beside an honest sender",
        "killed 0 for want of 64 MiB; half a minute later ≤ 8 MiB more than a twin that as many told of an invoice; p99 < 2 s; failures 0",
    ),
];
