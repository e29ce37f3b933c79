//! Defaults < file < variables < flags, merged by figment; every error names the key and the place, and never the value.
//!
//! figment's own errors and TOML's print the value or the line: they are taken apart here and only what is harmless is kept.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use figment::error::Kind;
use figment::providers::{Format as _, Serialized, Toml};
use figment::value::{Dict, Map};
use figment::{Figment, Metadata, Profile, Provider, Source};

use super::error::{Error, Origin};
use super::keys::{Shape, beside, first_unknown, known, nearest, variable_of};
use super::settings::Settings;
use super::variables::{self, Given, spell};
use crate::regular_file::{self, Rule, Unfit};

/// The file that is read when it exists and no other is named.
pub const STANDARD_FILE: &str = "/etc/tilld/config.toml";

/// Largest file that is read, in bytes: a thousand times what the settings need, and no more than memory forgives.
const FILE_LIMIT: u64 = 1_048_576;

/// Which file to read.
#[derive(Clone, Debug)]
pub enum ConfigFile {
    /// This one, and it must be there.
    Named(PathBuf),
    /// This one when it exists.
    IfThere(PathBuf),
    /// None: what is left is variables and flags.
    Nowhere,
}

/// Settings from the command line. They outrank all others.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `--state-dir`
    pub state_dir: Option<PathBuf>,
    /// `--listen`
    pub listen: Option<String>,
    /// `--i-know`, as `true`
    pub network: Option<String>,
    /// `--log-level`
    pub log_level: Option<String>,
}

/// Where settings come from.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The file.
    pub file: ConfigFile,
    /// The environment; only names with the prefix are looked at.
    pub variables: Vec<(OsString, OsString)>,
    /// The command line.
    pub flags: Flags,
}

/// Settings and the file they came from.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The settings, within their ranges.
    pub settings: Settings,
    /// The file that was read, if any.
    pub file: Option<PathBuf>,
    /// Where `listener.listen` was set.
    pub listen: Origin,
}

/// Reads and judges the settings.
///
/// # Errors
/// The first thing that is wrong: a file that cannot be read or is not TOML, an unknown key, a value of the wrong type,
/// out of its range or against a rule.
pub fn load(sources: &Sources) -> Result<Loaded, Error> {
    let mut figment = Figment::from(Serialized::defaults(Settings::default()));
    let read = match &sources.file {
        ConfigFile::Named(path) => read_file(path, true)?.map(|tree| (path, tree)),
        ConfigFile::IfThere(path) => read_file(path, false)?.map(|tree| (path, tree)),
        ConfigFile::Nowhere => None,
    };
    let file = read.as_ref().map(|(path, _tree)| (*path).clone());
    if let Some((path, tree)) = read {
        figment = add(figment, &Origin::File(path.clone()), tree, None)?;
    }
    for given in variables::read(&sources.variables)? {
        figment = add(figment, &given.origin, given.tree(), Some(&given.key))?;
    }
    for given in given_by_flags(&sources.flags)? {
        figment = add(figment, &given.origin, given.tree(), Some(&given.key))?;
    }
    let settings: Settings = figment.extract().map_err(|error| take_apart(&error))?;
    settings.validate(&|key| origin_of(figment.find_metadata(key)))?;
    let listen = origin_of(figment.find_metadata("listener.listen"));
    Ok(Loaded {
        settings,
        file,
        listen,
    })
}

fn given_by_flags(flags: &Flags) -> Result<Vec<Given>, Error> {
    let state_dir = flags.state_dir.as_ref().map(|path| match path.to_str() {
        Some(path) => Ok(path.to_owned()),
        None => Err(Error::Refused {
            key: "state_dir".to_owned(),
            origin: Origin::Flag("--state-dir".to_owned()),
            rule: "must be UTF-8".to_owned(),
        }),
    });
    [
        ("--state-dir", "state_dir", state_dir.transpose()?),
        ("--listen", "listener.listen", flags.listen.clone()),
        ("--i-know", "ledger.network", flags.network.clone()),
        ("--log-level", "log_level", flags.log_level.clone()),
    ]
    .into_iter()
    .filter_map(|(flag, key, text)| {
        let origin = Origin::Flag(flag.to_owned());
        text.map(|text| variables::given(key.to_owned(), &text, origin))
    })
    .collect()
}

fn read_file(path: &Path, must_exist: bool) -> Result<Option<Dict>, Error> {
    let unreadable = |source| Error::Read {
        path: path.to_owned(),
        source,
    };
    let bytes = match regular_file::read(path, Rule::open(FILE_LIMIT)) {
        Ok(bytes) => bytes,
        Err(missing) if missing.is_missing() && !must_exist => return Ok(None),
        Err(Unfit::TooLarge(limit)) => {
            let path = path.to_owned();
            return Err(Error::TooLarge { path, limit });
        }
        Err(unfit) => return Err(unreadable(unfit.into_io())),
    };
    let text = str::from_utf8(&bytes)
        .map_err(|cause| unreadable(io::Error::new(ErrorKind::InvalidData, cause)))?;
    Toml::from_str(text).map(Some).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        let before = before.unwrap_or_default();
        Error::Syntax {
            path: path.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before.chars().rev().take_while(|c| *c != '\n').count() + 1,
            what: error.message().replace('\n', ", "),
        }
    })
}

/// Adds a layer, once all its keys are known. A layer of one key names it: the nearest to the whole is a better hint than
/// the nearest to its first unknown part.
fn add(
    figment: Figment,
    origin: &Origin,
    tree: Dict,
    only: Option<&str>,
) -> Result<Figment, Error> {
    if let Some((spelled, plain)) = first_unknown(&tree) {
        let whole = only.filter(|whole| nearest(whole).is_some());
        let hint = hint_for(whole.unwrap_or(&plain), origin);
        return Err(Error::Unknown {
            key: spelled,
            origin: origin.clone(),
            hint,
        });
    }
    let metadata = match origin {
        Origin::Default => Metadata::named(DEFAULT),
        Origin::File(path) => Metadata::named(FILE).source(path.as_path()),
        Origin::Variable(name) => Metadata::named(VARIABLE).source(name.as_str()),
        Origin::Flag(name) => Metadata::named(FLAG).source(name.as_str()),
    };
    Ok(figment.merge(Layer { metadata, tree }))
}

fn hint_for(unknown: &str, origin: &Origin) -> String {
    let spelled = |key: &str| match origin {
        Origin::Variable(_) => variable_of(key),
        Origin::Default | Origin::File(_) | Origin::Flag(_) => key.to_owned(),
    };
    if let Some(key) = nearest(unknown) {
        return format!("the nearest known key is `{}`", spelled(&key));
    }
    let parent = unknown.rsplit_once('.').map_or("", |(parent, _)| parent);
    let keys: Vec<String> = beside(unknown)
        .iter()
        .map(|name| format!("`{}`", spelled(&super::keys::join(parent, name))))
        .collect();
    format!("known keys: {}", keys.join(", "))
}

const DEFAULT: &str = "default";
const FILE: &str = "file";
const VARIABLE: &str = "variable";
const FLAG: &str = "flag";

/// One layer of settings. One per variable, so that figment remembers which of them set a value.
struct Layer {
    metadata: Metadata,
    tree: Dict,
}

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        self.metadata.clone()
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        Ok(Map::from([(Profile::Default, self.tree.clone())]))
    }
}

fn origin_of(metadata: Option<&Metadata>) -> Origin {
    let Some(metadata) = metadata else {
        return Origin::Default;
    };
    match (&metadata.source, metadata.name.as_ref()) {
        (Some(Source::File(path)), _) => Origin::File(path.clone()),
        (Some(Source::Custom(name)), VARIABLE) => Origin::Variable(name.clone()),
        (Some(Source::Custom(name)), _) => Origin::Flag(name.clone()),
        _ => Origin::Default,
    }
}

/// Keeps of figment's error the key, the place and what was expected.
fn take_apart(error: &figment::Error) -> Error {
    let (key, plain) = spell(&error.path);
    let origin = origin_of(error.metadata.as_ref());
    let listed = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        names.join(", ")
    };
    let rule = match &error.kind {
        Kind::MissingField(name) => format!("must have `{name}`"),
        Kind::UnknownVariant(_, expected) => format!("must be one of {}", listed(expected)),
        // Our own messages begin so; those of others may hold the value.
        Kind::Message(text) if text.starts_with("must ") => text.clone(),
        _ if plain == "listener.listen" => {
            "must be an address and a port such as `127.0.0.1:8480`".to_owned()
        }
        _ if key.ends_with(']') && matches!(known().find(&plain), Some(Shape::Rows(_))) => {
            "must be a table".to_owned()
        }
        _ => known()
            .find(&plain)
            .map_or("has the wrong type".to_owned(), |shape| shape.rule(&plain)),
    };
    Error::Refused { key, origin, rule }
}
