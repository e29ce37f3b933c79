//! The options of the bench. What is unknown is refused, but for what cargo itself hands over.

use std::path::PathBuf;

/// What `--help` prints.
pub(crate) const HELP: &str = "\
usage: cargo bench --bench figures -- [OPTIONS]

  --quick            fewer and shorter rounds, and no ledger of a million: two minutes
  --smoke            the shortest run of everything that is quick: does it work, does it tell the truth
  --only PART,PART   only these parts
  --peers            also the peers that benches/peers/install.sh installed
  --rows N           rows of the largest ledgers (default 10000000; --quick 100000)
  --dir DIRECTORY    where ledgers are made (default target/figures; the file system is what is measured)
  --daemon FILE      the program to measure (default the release binary that cargo built)
  --json FILE        where the figures go (default target/figures/figures.json)
  --plot FILE        where the plot goes (default target/figures/latency.svg)";

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Effort {
    /// Whether it works at all.
    Smoke,
    /// Two minutes.
    Quick,
    /// All of it.
    Full,
}

impl Effort {
    /// Open invoices of the shop that stands for one with very many. The bars are for a million, and are only judged there:
    /// to make so many takes longer than a quick run may.
    pub(crate) const fn many(self) -> u32 {
        match self {
            Self::Smoke | Self::Quick => 100_000,
            Self::Full => MANY,
        }
    }
}

/// Open invoices that the bars for a big shop speak of.
pub(crate) const MANY: u32 = 1_000_000;

/// The options.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// How much is measured.
    pub(crate) effort: Effort,
    /// Only these parts; all when there are none.
    pub(crate) only: Vec<String>,
    /// Whether installed peers are measured.
    pub(crate) peers: bool,
    /// Rows of the largest ledgers.
    pub(crate) rows: u32,
    /// Where ledgers are made.
    pub(crate) directory: PathBuf,
    /// The program under test.
    pub(crate) daemon: PathBuf,
    /// Where the figures go.
    pub(crate) json: PathBuf,
    /// Where the plot goes.
    pub(crate) plot: PathBuf,
}

impl Options {
    /// Reads the arguments; `None` when help is wanted.
    pub(crate) fn read(mut args: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let target = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/figures");
        let mut options = Self {
            effort: Effort::Full,
            only: Vec::new(),
            peers: false,
            rows: 0,
            directory: target.clone(),
            daemon: PathBuf::from(env!("CARGO_BIN_EXE_tilld")),
            json: target.join("figures.json"),
            plot: target.join("latency.svg"),
        };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(format!("`{arg}` needs a value"));
            match arg.as_str() {
                "--help" | "-h" => return Ok(None),
                // Cargo's own word for a bench without its harness.
                "--bench" => {}
                "--quick" => options.effort = Effort::Quick,
                "--smoke" => options.effort = Effort::Smoke,
                "--peers" => options.peers = true,
                "--only" => options.only = value()?.split(',').map(str::to_owned).collect(),
                "--rows" => {
                    let text = value()?;
                    let read = text.replace('_', "").parse();
                    options.rows = read.map_err(|_e| format!("`{text}` is no number of rows"))?;
                }
                "--dir" => {
                    let text = value()?;
                    // A config names places absolutely.
                    let absolute = std::path::absolute(&text);
                    options.directory = absolute.map_err(|e| format!("`{text}`: {e}"))?;
                }
                "--daemon" => options.daemon = value()?.into(),
                "--json" => options.json = value()?.into(),
                "--plot" => options.plot = value()?.into(),
                other => return Err(format!("`{other}` is no option")),
            }
        }
        if options.rows == 0 {
            options.rows = match options.effort {
                Effort::Full => 10_000_000,
                Effort::Quick | Effort::Smoke => 100_000,
            };
        }
        let known = |name: &String| crate::parts::ALL.iter().any(|part| part.name == name);
        match options.only.iter().find(|name| !known(name)) {
            Some(name) => Err(format!("`{name}` is no part")),
            None => Ok(Some(options)),
        }
    }

    /// Whether a part is to be measured.
    pub(crate) fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == part)
    }
}
