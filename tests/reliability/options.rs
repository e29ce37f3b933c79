//! The arguments. What is unknown is refused.

use crate::harness::dice;
use crate::list::ROWS;

/// What `--help` prints.
pub(crate) const HELP: &str = "\
usage: cargo test --release --test reliability -- [ROW...] [OPTIONS]

  ROW          only these rows, such as R03; all when none is named
  --long       as often as before a release
  --seed N     the same plan as the run that printed N (the machine's own timing cannot be repeated)
  --markdown   the table as the docs have it
  --list       the rows, and what each must show";

/// How much is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Ten minutes in all.
    Short,
    /// What a release is judged by.
    Long,
}

impl Effort {
    /// How often something is done.
    pub(crate) const fn of(self, short: usize, long: usize) -> usize {
        match self {
            Self::Short => short,
            Self::Long => long,
        }
    }
}

/// What was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Only these; all when there are none.
    pub(crate) only: Vec<String>,
    pub(crate) effort: Effort,
    pub(crate) seed: u64,
    pub(crate) is_markdown: bool,
    pub(crate) is_list: bool,
}

impl Options {
    /// Reads the arguments; `None` when help is wanted.
    pub(crate) fn read(mut args: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let mut options = Self {
            only: Vec::new(),
            effort: Effort::Short,
            seed: 0,
            is_markdown: false,
            is_list: false,
        };
        let mut seed = None;
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--help" | "-h" => return Ok(None),
                "--long" => options.effort = Effort::Long,
                "--markdown" => options.is_markdown = true,
                "--list" => options.is_list = true,
                "--seed" => {
                    let text = args.next().ok_or("`--seed` needs a number")?;
                    let number = text
                        .parse()
                        .map_err(|_error| format!("`{text}` is no seed"))?;
                    seed = Some(number);
                }
                row if ROWS.iter().any(|known| known.id == row) => options.only.push(arg),
                other => return Err(format!("`{other}` is neither a row nor an option")),
            }
        }
        options.seed = seed.unwrap_or_else(dice::seed);
        Ok(Some(options))
    }

    /// Whether a row is to be run.
    pub(crate) fn wants(&self, id: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|wanted| wanted == id)
    }
}
