//! The order a waiting process gets on its standard input before anything else: which program it becomes, with which
//! arguments, environment and working directory. Nothing runs without a whole one.
//! Relies on being read without any buffer: what follows it is the program's own standard input.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use rustix::io::Errno;

/// The byte an order begins with.
const GO: u8 = b'G';

/// Longest order, in bytes: some times what `exec` takes at all (a quarter of the stack's limit, usually 2 MiB).
const LONGEST: usize = 16 * 1024 * 1024;

/// What becomes of a waiting process.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Order {
    /// Where it runs.
    pub(super) dir: PathBuf,
    /// What it becomes.
    pub(super) program: PathBuf,
    /// With these arguments.
    pub(super) args: Vec<OsString>,
    /// And this environment, and no other.
    pub(super) variables: Vec<(OsString, OsString)>,
}

impl Order {
    /// As it is sent. `None` when it is longer than any that could be run.
    pub(super) fn write(&self) -> Option<Vec<u8>> {
        let mut body = Vec::with_capacity(2048);
        let (dir, program) = (self.dir.as_os_str(), self.program.as_os_str());
        put(&mut body, dir)?;
        put(&mut body, program)?;
        put_length(&mut body, self.args.len())?;
        for arg in &self.args {
            put(&mut body, arg)?;
        }
        for (name, value) in &self.variables {
            put(&mut body, name)?;
            put(&mut body, value)?;
        }
        let mut order = vec![GO];
        put_length(&mut order, body.len())?;
        order.append(&mut body);
        (order.len() <= LONGEST).then_some(order)
    }

    /// Waits for one. Anything else, the end of the pipe above all, means that nobody vouches for this run.
    pub(super) fn receive(from: impl AsFd) -> Option<Self> {
        let [go, a, b, c, d] = *read_exactly(from.as_fd(), 5)?.first_chunk()?;
        let length = usize::try_from(u32::from_le_bytes([a, b, c, d])).ok()?;
        if go != GO || length > LONGEST {
            return None;
        }
        Self::read(&read_exactly(from.as_fd(), length)?)
    }

    fn read(mut body: &[u8]) -> Option<Self> {
        let body = &mut body;
        let (dir, program) = (take(body)?.into(), take(body)?.into());
        let count = take_length(body)?;
        let mut args = Vec::new();
        for _ in 0..count {
            args.push(take(body)?);
        }
        let mut variables = Vec::new();
        while !body.is_empty() {
            variables.push((take(body)?, take(body)?));
        }
        Some(Self {
            dir,
            program,
            args,
            variables,
        })
    }
}

fn put(bytes: &mut Vec<u8>, text: &OsStr) -> Option<()> {
    put_length(bytes, text.len())?;
    bytes.extend_from_slice(text.as_bytes());
    Some(())
}

fn put_length(bytes: &mut Vec<u8>, length: usize) -> Option<()> {
    bytes.extend_from_slice(&u32::try_from(length).ok()?.to_le_bytes());
    Some(())
}

fn take(bytes: &mut &[u8]) -> Option<OsString> {
    let length = take_length(bytes)?;
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(OsString::from_vec(text.to_vec()))
}

fn take_length(bytes: &mut &[u8]) -> Option<usize> {
    let (length, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    usize::try_from(u32::from_le_bytes(*length)).ok()
}

/// So many bytes and not one more; `None` when they end before.
fn read_exactly(from: impl AsFd, count: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; count];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match rustix::io::read(from.as_fd(), rest) {
            Ok(0) => return None,
            Ok(read) => filled += read,
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _, pipe};

    use super::*;

    fn order() -> Order {
        Order {
            dir: "/run/a b".into(),
            program: "/bin/sh".into(),
            args: vec!["-c".into(), OsString::new(), "\u{44f}\n=".into()],
            variables: vec![("A".into(), "b=c".into()), ("D".into(), "".into())],
        }
    }

    #[test]
    fn it_is_read_as_it_was_written_and_nothing_behind_it() {
        let (mut reader, mut writer) = pipe().expect("a pipe");
        let bytes = order().write().expect("short");
        writer
            .write_all(&[&bytes, &b"{}\n"[..]].concat())
            .expect("written");
        drop(writer);
        assert_eq!(Order::receive(&reader), Some(order()));
        let mut rest = String::new();
        reader.read_to_string(&mut rest).expect("the rest");
        assert_eq!(rest, "{}\n");
    }

    /// A daemon that is killed in the middle leaves less than all of it.
    #[test]
    fn less_than_all_of_it_is_nothing() {
        let bytes = order().write().expect("short");
        for cut in 0..bytes.len() {
            let (reader, mut writer) = pipe().expect("a pipe");
            let part = bytes.get(..cut).expect("within");
            writer.write_all(part).expect("written");
            drop(writer);
            assert_eq!(Order::receive(&reader), None, "{cut}");
        }
    }
}
