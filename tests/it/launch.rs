//! The launcher in the real binary: it splits off processes, each of which waits for its order and becomes the program, in
//! the same process and with the rest of its input.

use std::io::{IoSlice, PipeReader, Read as _, Write as _, pipe};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType, recv, send, sendmsg, socketpair,
};

use crate::harness::{PATIENCE, children, wait_until};

/// The bytes of a message, either way: what it is, two numbers, and a flag.
const MESSAGE: usize = 10;

/// A launcher with its socket.
struct Launcher {
    process: Child,
    socket: Option<OwnedFd>,
}

/// What a process that was started by the launcher wrote.
struct Pipes {
    stdout: PipeReader,
    stderr: PipeReader,
}

impl Launcher {
    fn start() -> Self {
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .expect("a socket");
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilld"));
        command.arg("__launch").stdin(Stdio::from(theirs));
        let process = command.spawn().expect("tilld starts");
        let socket = Some(ours);
        Self { process, socket }
    }

    fn socket(&self) -> &OwnedFd {
        self.socket.as_ref().expect("open")
    }

    fn hear(&self) -> (u8, i32, i32) {
        let mut bytes = [0; MESSAGE];
        let (heard, _) =
            recv(self.socket(), &mut bytes, RecvFlags::empty()).expect("the launcher answers");
        assert_eq!(heard, MESSAGE);
        let [kind, a, b, c, d, e, f, g, h, _] = bytes;
        let number = |bytes| i32::from_le_bytes(bytes);
        (kind, number([a, b, c, d]), number([e, f, g, h]))
    }

    /// Has a process started, gives it `input` and closes its pipe.
    fn begin(&self, input: &[u8]) -> (i32, Pipes) {
        let (its_stdin, mut stdin) = pipe().expect("a pipe");
        let (stdout, its_stdout) = pipe().expect("a pipe");
        let (stderr, its_stderr) = pipe().expect("a pipe");
        let mut wish = [0; MESSAGE];
        wish[0] = b'S';
        let streams = [its_stdin.as_fd(), its_stdout.as_fd(), its_stderr.as_fd()];
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = SendAncillaryBuffer::new(&mut room);
        assert!(control.push(SendAncillaryMessage::ScmRights(&streams)));
        let piece = [IoSlice::new(&wish)];
        sendmsg(self.socket(), &piece, &mut control, SendFlags::empty()).expect("sent");
        let (kind, pid, _) = self.hear();
        assert_eq!(kind, b'S', "started");
        // One that gave up does not read on.
        drop(stdin.write_all(input));
        (pid, Pipes { stdout, stderr })
    }

    /// Waits until the next one has ended, and lets it go.
    fn end(&self, mut pipes: Pipes) -> (i32, Output) {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        pipes.stdout.read_to_end(&mut stdout).expect("its output");
        pipes.stderr.read_to_end(&mut stderr).expect("its output");
        let (kind, pid, status) = self.hear();
        assert_eq!(kind, b'E', "ended");
        let unreaped = children(self.process.id());
        assert!(
            unreaped.contains(&(u32::try_from(pid).expect("a pid"), 'Z')),
            "{unreaped:?}"
        );
        let mut release = [0; MESSAGE];
        for (byte, own) in release
            .iter_mut()
            .zip([b'R'].into_iter().chain(pid.to_le_bytes()))
        {
            *byte = own;
        }
        send(self.socket(), &release, SendFlags::empty()).expect("sent");
        wait_until(PATIENCE, "it to be reaped", || {
            children(self.process.id()).is_empty()
        });
        let status = ExitStatus::from_raw(status);
        let output = Output {
            status,
            stdout,
            stderr,
        };
        (pid, output)
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        drop(self.socket.take());
        let ended = self.process.wait();
        assert!(std::thread::panicking() || ended.is_ok_and(|status| status.success()));
    }
}

/// An order as it is sent, for a program that runs in `/` and has one variable.
fn order(program: &str, args: &[&str]) -> Vec<u8> {
    let length = |count: usize| u32::try_from(count).expect("short").to_le_bytes();
    let text = |text: &&str| [&length(text.len())[..], text.as_bytes()].concat();
    let mut body = ["/", program].iter().flat_map(text).collect::<Vec<u8>>();
    body.extend(length(args.len()));
    body.extend(args.iter().chain(&["ONLY", "this"]).flat_map(text));
    [&b"G"[..], &length(body.len()), &body].concat()
}

/// Starts the program in a launcher of its own, with this input behind the order.
fn launch(program: &str, args: &[&str], input: &[u8]) -> (i32, Output) {
    let launcher = Launcher::start();
    let (pid, pipes) = launcher.begin(&[&order(program, args), input].concat());
    let (ended, output) = launcher.end(pipes);
    assert_eq!(pid, ended);
    (pid, output)
}

#[test]
fn without_a_whole_order_nothing_runs() {
    let launcher = Launcher::start();
    let whole = order("/bin/sh", &["-c", "echo ran"]);
    let (cut, first) = (whole.split_last().expect("long").1, &whole[..1]);
    for input in [&b""[..], b"x", b"\n", b"{\"schema\":1}", first, cut] {
        let (_, pipes) = launcher.begin(input);
        let (_, output) = launcher.end(pipes);
        assert!(
            output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(),
            "{input:?}"
        );
    }
    let (_, pipes) = launcher.begin(&whole);
    assert_eq!(launcher.end(pipes).1.stdout, b"ran\n");
}

/// What waits for its order has nobody left to get it from.
#[test]
fn a_launcher_whose_daemon_is_gone_ends_though_its_hooks_run() {
    let mut launcher = Launcher::start();
    let (_, mut pipes) = launcher.begin(&order("/bin/sh", &["-c", "echo; exec sleep 0.2"]));
    pipes.stdout.read_exact(&mut [0]).expect("it runs");
    drop(launcher.socket.take());
    assert!(launcher.process.wait().expect("it ends").success());
    pipes
        .stdout
        .read_to_end(&mut Vec::new())
        .expect("it ends by itself");
}

#[test]
fn the_program_takes_over_process_input_environment_and_arguments() {
    let script =
        "echo $$; env | grep -v -e ^PWD= -e ^SHLVL= -e ^_=; printf '<%s>\\n' \"$@\"; cat; exit 42";
    let (pid, output) = launch(
        "/bin/sh",
        &["-c", script, "sh", "a b", "--x", "$(id)", ""],
        b"{\"a\":1}\nGG",
    );
    let wanted = format!("{pid}\nONLY=this\n<a b>\n<--x>\n<$(id)>\n<>\n{{\"a\":1}}\nGG");
    assert_eq!(String::from_utf8_lossy(&output.stdout), wanted);
    assert_eq!(output.status.code(), Some(42));
}

#[test]
fn the_program_starts_with_the_usual_signals() {
    let (_, output) = launch("/bin/sh", &["-c", "kill -PIPE $$; echo ignored"], b"");
    assert_eq!(output.status.signal(), Some(13), "{output:?}");
}

#[test]
fn what_cannot_start_says_why_in_the_words_of_a_shell() {
    let dir = tempfile::tempdir().expect("a directory");
    // Written by another process: a file that one of ours has open for writing, if only in a child about to start
    // another program, cannot be run.
    let file = |name: &str, text: &str, mode: &str| {
        let path = dir.path().join(name);
        let mut shell = Command::new("/bin/sh");
        shell
            .args([
                "-c",
                "printf %s \"$1\" > \"$2\" && chmod \"$3\" \"$2\"",
                "sh",
                text,
            ])
            .arg(&path)
            .arg(mode);
        assert!(shell.status().expect("sh starts").success());
        path
    };
    let check = |path: &Path, code: i32, why: &str| {
        let (_, output) = launch(path.to_str().expect("UTF-8"), &[], b"{}\n");
        let told = String::from_utf8_lossy(&output.stderr);
        let wanted = format!("tilld: could not start `{}`: {why}", path.display());
        assert!(told.starts_with(&wanted) && told.ends_with('\n'), "{told}");
        assert_eq!(output.status.code(), Some(code), "{told}");
    };
    check(
        &dir.path().join("absent"),
        127,
        "No such file or directory (os error 2)",
    );
    check(Path::new("ship.sh"), 126, "its path is not absolute");
    check(dir.path(), 126, "Permission denied (os error 13)");
    check(
        &file("plain", "#!/bin/sh\n", "644"),
        126,
        "Permission denied (os error 13)",
    );
    check(
        &file("bare", "echo hello\n", "755"),
        126,
        "it is no program and has no `#!` line",
    );
    check(
        &file("crlf", "#!/bin/sh\r\n", "755"),
        127,
        "its interpreter `/bin/sh\\r` is missing (its first line ends in",
    );
    check(
        &file("lost", "#!/no/perl -w\n", "755"),
        127,
        "its interpreter `/no/perl` is missing: No such file",
    );
}
