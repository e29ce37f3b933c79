//! `tilld delivery retry`, `replay`, `release` and `abandon`: which deliveries a person means. One table says what each of them
//! takes; there is no `replay --all`, since to run everything that was ever done is never meant.

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, FromArgMatches};

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::change::{self, Wish};
use super::list::states;
use crate::ledger::{Act, DeliveryState};

/// One of the commands.
#[derive(Clone, Copy)]
struct Row {
    act: Act,
    /// The help of `--order`.
    order: &'static str,
    /// The help of `--all`, where there is that.
    all: Option<&'static str>,
    /// There is `--state`.
    by_state: bool,
    /// `--all` needs a `--hook` or a `--state`.
    is_narrowed: bool,
    /// The help of `--dry-run`.
    dry_run: &'static str,
}

const ROWS: [Row; 4] = [
    Row {
        act: Act::Retry,
        order: "All of this order",
        all: Some(
            "All there are, but for what a person gave up; `--state abandoned` leaves out what waits",
        ),
        by_state: true,
        is_narrowed: false,
        dry_run: "Show what would be due now, and change nothing",
    },
    Row {
        act: Act::Replay,
        order: "All that is done of this order",
        all: None,
        by_state: false,
        is_narrowed: false,
        dry_run: "Show what would run once more, and change nothing",
    },
    Row {
        act: Act::Release,
        order: "All that is held of this order",
        all: Some("All that is held"),
        by_state: false,
        is_narrowed: false,
        dry_run: "Show what would run, and change nothing",
    },
    Row {
        act: Act::Abandon,
        order: "All that is not done of this order",
        all: Some("All there are, of one `--hook` or in one `--state`"),
        by_state: true,
        is_narrowed: true,
        dry_run: "Show what would be given up, and change nothing",
    },
];

/// What a person means by the command of this row.
#[derive(Debug)]
pub(super) struct Args<const ROW: usize>(Wish);

/// By their rows.
pub(super) type Retry = Args<0>;
pub(super) type Replay = Args<1>;
pub(super) type Release = Args<2>;
pub(super) type Abandon = Args<3>;

impl<const ROW: usize> Args<ROW> {
    const ROW: Row = {
        let [retry, replay, release, abandon] = ROWS;
        match ROW {
            0 => retry,
            1 => replay,
            2 => release,
            _ => abandon,
        }
    };

    /// Runs the command.
    pub(super) async fn run(self, context: Context) -> Result<Exit, Failure> {
        change::run(self.0, context).await
    }
}

impl<const ROW: usize> clap::Args for Args<ROW> {
    fn augment_args(command: Command) -> Command {
        let row = Self::ROW;
        let mut which = vec!["event", "order"];
        let mut command = command
            .arg(
                Arg::new("event")
                    .value_name("EVENT")
                    .help("The event's id, or its number"),
            )
            .arg(
                Arg::new("order")
                    .long("order")
                    .value_name("ORDER")
                    .help(row.order),
            );
        if let Some(help) = row.all {
            which.push("all");
            let all = Arg::new("all").long("all").action(ArgAction::SetTrue);
            let all = all.help(help);
            command = command.arg(if row.is_narrowed {
                all.requires("narrowed")
            } else {
                all
            });
        }
        command = command.arg(
            Arg::new("hook")
                .long("hook")
                .value_name("NAME")
                .help("Only deliveries to this hook"),
        );
        if row.by_state {
            let state = Arg::new("state").long("state").value_name("STATE");
            let state = state.value_parser(states(row.act.takes()));
            command = command.arg(state.help("Only those that have come this far"));
        }
        if row.is_narrowed {
            let narrowed = ArgGroup::new("narrowed").multiple(true);
            command = command.group(narrowed.args(["hook", "state"]));
        }
        let dry_run = Arg::new("dry_run").long("dry-run");
        let dry_run = dry_run.action(ArgAction::SetTrue).help(row.dry_run);
        let which = ArgGroup::new("which").required(true).args(which);
        command.arg(dry_run).group(which)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const ROW: usize> FromArgMatches for Args<ROW> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let text = |name| matches.get_one::<String>(name).cloned();
        let state = |name| matches.get_one::<DeliveryState>(name).copied();
        Ok(Self(Wish {
            act: Self::ROW.act,
            event: text("event"),
            order: text("order"),
            hook: text("hook"),
            state: Self::ROW.by_state.then(|| state("state")).flatten(),
            dry_run: matches.get_flag("dry_run"),
        }))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
