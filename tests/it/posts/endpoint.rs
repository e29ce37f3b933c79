//! The shop's address that hooks post to: it says to each request what a case wants, to the byte, and remembers what it
//! was asked.

use std::collections::VecDeque;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// What it says to a request.
#[derive(Clone, Debug)]
pub(super) enum Say {
    /// A status, with these header lines and this body.
    Answer(u16, String, Vec<u8>),
    /// Nothing, until it is told to go on; then 200.
    Held,
    /// Reads the request and closes without an answer.
    Lost,
    /// 200 and a body that never ends.
    Endless,
    /// 200 and the beginning of a body whose rest never comes.
    Stuck,
}

/// A status with nothing more.
pub(super) fn says(status: u16) -> Say {
    Say::Answer(status, String::new(), Vec::new())
}

/// A status with this body.
pub(super) fn says_that(status: u16, body: &str) -> Say {
    Say::Answer(status, String::new(), body.into())
}

/// A status with this header line.
pub(super) fn says_with(status: u16, header: &str) -> Say {
    Say::Answer(status, format!("{header}\r\n"), Vec::new())
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) request_line: String,
    /// In their order; names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl Asked {
    /// The value of a header that stands there once, by its name in lower case.
    #[track_caller]
    pub(super) fn header(&self, name: &str) -> &str {
        let mut found = self.headers.iter().filter(|(key, _)| key == name);
        match (found.next(), found.next()) {
            (Some((_, value)), None) => value,
            _ => panic!("`{name}` does not stand there once: {self:?}"),
        }
    }
}

/// Locked for a moment by its threads and by the test.
#[derive(Debug, Default)]
struct Talk {
    says: VecDeque<Say>,
    asked: Vec<Asked>,
    go_on: bool,
}

/// A running one. Ends with the test process: it holds nothing but its port.
#[derive(Debug)]
pub(super) struct Endpoint {
    address: SocketAddr,
    talk: Arc<(Mutex<Talk>, Condvar)>,
}

impl Endpoint {
    /// Starts one that says `says` in their order, the last one for ever.
    pub(super) fn start(says: &[Say]) -> Self {
        Self::at(TcpListener::bind("127.0.0.1:0").expect("a port"), says)
    }

    /// Starts one that listens there.
    pub(super) fn at(listener: TcpListener, says: &[Say]) -> Self {
        let address = listener.local_addr().expect("bound");
        let talk = Talk {
            says: says.iter().cloned().collect(),
            ..Talk::default()
        };
        let talk = Arc::new((Mutex::new(talk), Condvar::new()));
        let kept = Arc::clone(&talk);
        drop(thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let talk = Arc::clone(&kept);
                // A client that went away half-way is its own trouble.
                drop(thread::spawn(move || answer(stream, &talk)));
            }
        }));
        Self { address, talk }
    }

    /// An address on it, with a query as many shops have.
    pub(super) fn url(&self) -> String {
        format!("http://{}/index.php?route=tilld&x=a%20b", self.address)
    }

    /// What it was asked so far.
    pub(super) fn asked(&self) -> Vec<Asked> {
        self.talk.0.lock().expect("no panic there").asked.clone()
    }

    /// Answers what is held, now and later.
    pub(super) fn go_on(&self) {
        self.talk.0.lock().expect("no panic there").go_on = true;
        self.talk.1.notify_all();
    }
}

fn answer(stream: TcpStream, (talk, changed): &(Mutex<Talk>, Condvar)) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let line = line.trim_end().to_owned();
        if line.is_empty() {
            break;
        }
        lines.push(line);
    }
    let mut lines = lines.into_iter();
    let mut asked = Asked {
        request_line: lines.next().unwrap_or_default(),
        headers: lines
            .filter_map(|line| {
                let (name, value) = line.split_once(": ")?;
                Some((name.to_ascii_lowercase(), value.to_owned()))
            })
            .collect(),
        body: String::new(),
    };
    let mut body = vec![0; asked.header("content-length").parse().expect("a length")];
    reader.read_exact(&mut body)?;
    asked.body = String::from_utf8(body).expect("UTF-8");
    let mut stream = reader.into_inner();
    let say = {
        let mut talk = talk.lock().expect("no panic there");
        talk.asked.push(asked);
        let next = talk.says.front().cloned();
        if talk.says.len() > 1 {
            talk.says.pop_front();
        }
        next.expect("something to say")
    };
    let endless = "HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n";
    match say {
        Say::Answer(status, headers, body) => {
            let length = if status == 204 {
                String::new()
            } else {
                format!("Content-Length: {}\r\n", body.len())
            };
            let head = format!("HTTP/1.1 {status} Whatever\r\n{headers}{length}\r\n");
            stream.write_all(&[head.as_bytes(), &body].concat())
        }
        Say::Held => {
            let mut talk = talk.lock().expect("no panic there");
            while !talk.go_on {
                talk = changed.wait(talk).expect("no panic there");
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        }
        Say::Lost => Ok(()),
        Say::Endless => {
            stream.write_all(endless.as_bytes())?;
            let piece = vec![b'x'; 64 * 1024];
            // Until the other side has had enough.
            loop {
                stream.write_all(&piece)?;
            }
        }
        Say::Stuck => {
            stream.write_all(format!("{endless}so far").as_bytes())?;
            // Until the other side closes.
            stream.read_to_end(&mut Vec::new()).map(drop)
        }
    }
}
