//! tilld runs next to a merchant's shop. It opens invoices at the payment service, receives notifications (webhooks), polls
//! when none arrive, and runs the shop's scripts when an order is paid. One binary, one SQLite file.
//!
//! This page is for those who read and change the code: how it works and where things are. `CONTRIBUTING.md` says how to build,
//! test and measure it, and which files a change touches; `README.md` and `docs` are for operators. The library exists for the binary, its
//! tests and its benches: nothing here is a promise to other crates.
//!
//! How it works and why is in `docs/design.md`. Comments cite it (`design 4`), `docs/contract.md` (`contract 4.3`) and the
//! cases of `docs/cases.md` (`A17`).
//!
//! **The promise.** What the payment service says about an invoice ends up in the ledger exactly once, and every hook that
//! wants to know is run until it says it is done: through lost notifications, crashes, full disks and lies.
//!
//! # The one road
//!
//! ```text
//!  payment service ── notification ─▶ listener ─┐
//!         ▲  ▲                                  │ an authenticated Observation
//!         │  └──── fetch ───────── poller ──────┤
//!         └─────── create ─────── opening ──────┤ ◀── cli, control socket (the shop)
//!                                               ▼
//!                                    ledger: decide → one commit (invoice + event + deliveries)
//!                                               │
//!                                    outbox ────┴──▶ hook (the shop's script, or an address of the shop)
//!  shop scripts, sqlite3, PHP, Python ◀── read-only views of the same file
//! ```
//!
//! Every claim about an invoice, whoever makes it, becomes an `Observation` and goes through the same pure `decide` inside
//! the write transaction. There is no second way in.
//!
//! # The invariants, and the files that hold them
//!
//! 1. Only `ledger/apply` calls `decide` (`invoice/transition`), and only the writer's thread commits (`ledger/writer.rs`).
//! 2. A notification is answered 200 only after the commit that holds its event is durable: WAL with `synchronous=FULL`
//!    (`ledger/sqlite/open.rs`), replies after the commit (`ledger/writer.rs`), the answer after the reply
//!    (`listener/mod.rs`).
//! 3. A hook sees only committed events. An invoice never has two runs at once, each hook gets an invoice's events in their
//!    order, different invoices go side by side: the choice in `ledger/sqlite/runnable.rs` is where this is judged. How many
//!    runs each hook has at once is kept in `outbox/places.rs`: one that hangs takes no place of another.
//! 4. A wake may be lost, the periodic scan may not: the loops in `poller/mod.rs` and `outbox/mod.rs` work from the ledger's
//!    state, never from a message alone (`wake.rs`).
//! 5. Nothing secret is readable in the ledger file, a log line, an error, a `Debug`, argv or a child's environment:
//!    `secret/mod.rs`, `ledger/seal.rs`, `listener/notification.rs` (tokens are cut out before storing), `client/credentials.rs`.
//! 6. No amount passes through a float, and no ordering uses our clock: `invoice/amount.rs`, `wire/json.rs`,
//!    `invoice/moment.rs`.
//! 7. Every queue, body, batch, loop, wait and child output has a named limit, beside the code it limits; those an operator
//!    may want to change are in `config/settings.rs`.
//!
//! # Where things are
//!
//! | module | what it is |
//! |---|---|
//! | [`invoice`] | pure: amounts, statuses, claims, the moves between them, when silence is too long |
//! | [`wire`] | pure: the service's JSON, and the only place its field names occur |
//! | [`hook`] | which events a hook wants, what it is told (both pure), how its program is run, how its address is posted to |
//! | [`config`] | the settings: defaults, file, variables, flags; unknown keys are refused |
//! | [`http`] | serving HTTP: accept loop, limits, timeouts, drain; what can be read in two ways is refused; TLS |
//! | [`client`] | the typed client of the service, the login, the credentials, the gate all requests pass |
//! | [`listener`] | where notifications arrive and are authenticated |
//! | [`ledger`] | one writing thread with group commit, readers, sealed tokens; SQLite is below `ledger/sqlite` alone |
//! | [`opening`] | opens an invoice safely: row first, then the request, then the record |
//! | [`poller`] | asks about invoices that are silent, in doubt, or were nudged |
//! | [`outbox`] | runs hooks, or posts to them, for the events they are owed, until they are done or abandoned |
//! | [`daemon`] | the only place that wires tasks: start, supervise, watch, read the settings again, stop |
//! | [`parts`] | from the settings to what each part of the program takes |
//! | [`status`] | how everything stands: the one report that `status`, the alarms, the page and the socket show |
//! | [`admin`] | for programs and people of this machine: whether it works, figures, a page; reads and changes nothing |
//! | [`doctor`] | the checks of everything a payment needs on its way, each with a finding and a hint |
//! | [`answer`] | how an end is called and an invoice is told, the same at the command line and the control socket |
//! | [`control`] | the local socket through which the shop uses tilld without holding its secrets |
//! | [`sandbox`] | the imitation payment service |
//! | `bench` | what `benches/` reach: invoices to notify of, a notification's road, a big ledger and the poller's look at it |
//! | `simulation` | tests only: service, network, crashes and clocks in virtual time, around the real ledger and the real plans |
//! | `cli` | one file per command; prints, decides nothing. `cli/stage` is what a demo and a scenario play on, `cli/scenario` plays |
//! | [`clock`] [`entropy`] [`fault`] [`hardened`] [`news`] [`panics`] [`percent`] [`process_mark`] [`pulse`] [`regular_file`] [`retry_after`] [`secret`] [`shutdown`] [`telemetry`] [`wake`] | leaves: import nothing of ours, all may import them |
//!
//! Beside `src`: `tests/it` is the one integration test binary, against the real program over real HTTP; its `harness`
//! builds a world of sandbox, daemon and ledger, and checks the ledger's invariants after every scenario. `tests/reliability`
//! takes the same worlds through what years bring, each with a control that must fail, and prints a table. `tests/examples`
//! is what a shop pastes: `docs/shop-examples.md` shows these files and `tests/it/examples` runs them. `benches/figures` starts
//! the release binary as a merchant does and measures it. `systemd` holds the units, `packaging` what makes the Debian package
//! and a release. `tests/container/run` boots a small Debian with systemd, in which the package is installed, used, hurt,
//! upgraded and purged: what a unit forbids and restarts cannot be seen elsewhere.
//!
//! `src/simulation` is the other half of the tests: no process, no file, no clock but its own. It plays thousands of seeded
//! courses of events and checks the promises after each. A seed that breaks one is named, and replays. Beside them one
//! long course is written out, `simulation/outage`: an hour without a service for thousands of invoices, with a bound for
//! everything that follows.
//!
//! # Who may import whom
//!
//! The pure modules import no one; the rest import what stands between them and the road's beginning; only `daemon` and
//! `cli` see the settings, everybody else gets plain structs; nobody imports `cli`. Outside crates have one home each. The
//! tables are in `tests/it/layout/rules.rs`, which also fails when a file breaks them. A change of structure is a change
//! there first.
//!
//! # Words
//!
//! One word for one thing, in code, output and schema:
//!
//! - **service**: the remote party. **Notification**: what it pushes. **Poll**: one fetch made because of silence, doubt or
//!   a nudge. **Nudge**: a notification that could not be authenticated, a reason to poll soon and nothing more.
//! - **order id** is the merchant's, **invoice id** the service's, **ref** the unguessable last segment of an invoice's
//!   notificationUrl. **Notify token**: the secret of one invoice. **Access token**: what login yields. **Presentation**:
//!   the place where a notification carries its notify token.
//! - **Observation**: an authenticated claim. **Transition**: the decision on it. **Event**: one committed change.
//! - **Status** is the service's own word, **outcome** what it means here: open, paid, failed, reversed, mismatch.
//! - **Hook**: a configured script, or an address of the shop that is posted to. **Delivery**: one event owed to one hook.
//!   **Attempt**: one run of it, or one post. **Abandoned**: given up, by the schedule or by a person. **Place**: what a run
//!   takes while it goes on; each hook has its own, and further, slow ones for runs that last. **In hand**: it is claimed ahead
//!   of a place; it is begun or given back soon. **Held**: it waits until a
//!   person releases it, since what it tells is old: only the lists of status names made it so
//!   (`ledger/apply/reassess.rs`), or the ledger was restored and it may have run before (`ledger/apply/restored.rs`).
//!   **Missing**: an
//!   event is without it though a hook is owed it. **Retry**: it is due now though it waited or was abandoned. **Replay**: it was done, and is run again by a person's
//!   wish; it stays one from then on. **Generation**: how often a ledger was restored. **Mark**: the file that says how far
//!   a ledger was. **Attention**: something a person must look at. **Refusal**: a request on the listener not accepted.
//! - **Scenario**: a list of **steps** that the sandbox, customers and a daemon play, with what is expected of them. **Row**: one
//!   thing that was expected, and what was seen. **Storm**: the step whose orders, faults and kills are all drawn. **Seed**: what
//!   chance is drawn from; **trace**: what was done, drawn and seen with it. **Book**: what the service itself knows of its
//!   invoices, by which all is judged. **Goods** are **handed over**: what a shop does once for a paid order.
//!
//! Verbs: `fetch` over the network, `find` gives an option, `load` from a file, `list` many, `record` into the ledger,
//! `decide` and `plan` are pure, `run` is a loop. Suffixes: `_at` wall clock, `_deadline` monotonic, `_for` durations, units
//! last.
//!
//! # Where to start
//!
//! Read `invoice/transition/mod.rs` (what a claim does), then `ledger/apply/mod.rs` (how it is recorded), then
//! `daemon/mod.rs` (what runs beside what). `tilld demo` shows all of it at work, and `tests/it/notifications.rs` is how a
//! behaviour is pinned down from outside.

mod admin;
mod answer;
#[doc(hidden)]
pub mod bench;
mod cli;
mod client;
mod clock;
pub mod config;
mod control;
mod daemon;
mod doctor;
mod entropy;
mod fault;
mod file_lock;
mod hardened;
pub mod hook;
mod http;
pub mod invoice;
mod ledger;
pub mod listener;
mod news;
mod opening;
mod outbox;
mod panics;
mod parts;
mod percent;
mod poller;
mod process_mark;
mod pulse;
mod regular_file;
mod retry_after;
mod sandbox;
pub mod secret;
mod shutdown;
#[cfg(test)]
mod simulation;
mod status;
mod telemetry;
mod wake;
pub mod wire;

use std::process::ExitCode;

/// The command line.
pub fn run() -> ExitCode {
    // Before anything looks at arguments, environment or standard input: a hook's process starts this way.
    if let Some(code) = hook::launch::entry(std::env::args_os()) {
        return code;
    }
    hardened::begin();
    cli::run()
}
