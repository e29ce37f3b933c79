//! Whether a file is one that the kernel starts by itself. `exec` as the C library has it hands every other file to a shell:
//! an empty script would be a success, and a program built for another machine would be read as commands.
//!
//! What may be started but not read, and whatever a registered interpreter may be meant for, is left to the kernel.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use rustix::io::Errno;

use crate::regular_file::{self, Unfit};

/// How every program of the system begins.
const ELF: &[u8] = b"\x7fELF";

/// As much of a file's beginning as is judged: an ELF header up to the machine it is for.
const HEAD: usize = 20;

/// Where the kernel lists interpreters that were registered for other kinds of files.
const REGISTERED: &str = "/proc/sys/fs/binfmt_misc";

/// Machines whose programs another one runs too: those of 32 bits on those of 64.
const ALSO_RUNS: [(u16, u16); 2] = [(62, 3), (183, 40)];

/// Refuses the program, in the kernel's word for it and ours.
pub(super) fn check(program: &Path) -> Result<(), String> {
    let Ok(head) = head(program) else {
        return Ok(());
    };
    let own = head.starts_with(ELF).then(head_of_own).flatten();
    match judge(&head, own.as_deref()) {
        Err(_unknown) if is_registered() => Ok(()),
        Err(why) => {
            let kernels = io::Error::from_raw_os_error(Errno::NOEXEC.raw_os_error());
            Err(format!("{why}: {kernels}"))
        }
        Ok(()) => Ok(()),
    }
}

fn head(file: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD);
    let most = u64::try_from(HEAD).unwrap_or(u64::MAX);
    let (file, _) = regular_file::open(file).map_err(Unfit::into_io)?;
    file.take(most).read_to_end(&mut head)?;
    Ok(head)
}

fn head_of_own() -> Option<Vec<u8>> {
    head(&super::launch::own_binary()).ok()
}

/// True when some interpreter is registered, for whatever.
fn is_registered() -> bool {
    let Ok(entries) = fs::read_dir(REGISTERED) else {
        return false;
    };
    let own = ["register", "status"];
    entries
        .flatten()
        .any(|entry| !own.iter().any(|name| entry.file_name() == *name))
}

/// Judges a file by its beginning, beside that of a program which is known to run here.
fn judge(head: &[u8], own: Option<&[u8]>) -> Result<(), &'static str> {
    if head.starts_with(b"#!") {
        return Ok(());
    }
    if !head.starts_with(ELF) {
        return Err("it is no program and has no `#!` line that names its interpreter");
    }
    let machine = machine(head).ok_or("it is cut short")?;
    let Some(own) = own.and_then(self::machine) else {
        return Ok(());
    };
    if machine == own || ALSO_RUNS.contains(&(own.1, machine.1)) {
        Ok(())
    } else {
        Err("it was built for another kind of machine")
    }
}

/// Byte order and machine of an ELF header.
fn machine(head: &[u8]) -> Option<(u8, u16)> {
    let (order, machine) = (*head.get(5)?, [*head.get(18)?, *head.get(19)?]);
    let machine = match order {
        2 => u16::from_be_bytes(machine),
        _ => u16::from_le_bytes(machine),
    };
    Some((order, machine))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elf(order: u8, machine: [u8; 2]) -> Vec<u8> {
        let mut head = b"\x7fELF\x02".to_vec();
        head.push(order);
        head.resize(18, 0);
        head.extend(machine);
        head
    }

    #[test]
    fn only_what_the_kernel_starts_itself_passes() {
        let own = elf(1, [62, 0]);
        for (head, good) in [
            (b"#!/bin/sh\n".to_vec(), true),
            (b"#!".to_vec(), true),
            (own.clone(), true),
            (elf(1, [3, 0]), true),
            (elf(1, [183, 0]), false),
            (elf(2, [0, 62]), false),
            (b"\x7fELF\x02".to_vec(), false),
            (b"echo hello\n".to_vec(), false),
            (b"x\n".to_vec(), false),
            (Vec::new(), false),
        ] {
            assert_eq!(judge(&head, Some(&own)).is_ok(), good, "{head:?}");
        }
        assert_eq!(judge(&elf(1, [183, 0]), None), Ok(()));
    }
}
