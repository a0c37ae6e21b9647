//! What a container prints, line by line in a file.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::fd::OwnedFd,
    path::Path,
};

use neap_kit::clock::Clock;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    net::unix::pipe::Receiver,
};

/// A longer line is cut into pieces, so that one without an end fills no memory.
const LONGEST: usize = 16 << 10;

/// What a container printed in one piece, as a kubelet keeps it: time, stream, whether the line
/// ends here, text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line<'a> {
    /// When, in the form of RFC 3339.
    pub time: &'a str,
    /// `stdout` or `stderr`.
    pub stream: &'a str,
    /// Whether the line ends here.
    pub whole: bool,
    /// What it says.
    pub text: &'a str,
}

impl<'a> Line<'a> {
    /// Reads a line of the file.
    pub fn read(line: &'a str) -> Option<Self> {
        let mut parts = line.splitn(4, ' ');
        Some(Self {
            time: parts.next()?,
            stream: parts.next()?,
            whole: parts.next()? == "F",
            text: parts.next()?,
        })
    }
}

/// Two streams on their way into a file.
#[derive(Debug)]
pub struct Lines {
    out: Receiver,
    err: Receiver,
    file: File,
    clock: Clock,
}

impl Lines {
    pub(super) fn new(out: OwnedFd, err: OwnedFd, log: &Path, clock: Clock) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(log)?;
        Ok(Self {
            out: Receiver::from_owned_fd(out)?,
            err: Receiver::from_owned_fd(err)?,
            file,
            clock,
        })
    }

    /// Writes down what is printed until nobody holds the other end any more.
    pub async fn keep(self) -> io::Result<()> {
        let (out, err) = (BufReader::new(self.out), BufReader::new(self.err));
        let again = self.file.try_clone()?;
        let out = copy(out, self.file, "stdout", self.clock);
        let err = copy(err, again, "stderr", self.clock);
        let (out, err) = tokio::join!(out, err);
        out.and(err)
    }
}

async fn copy(
    mut from: BufReader<impl AsyncRead + Unpin>,
    mut to: File,
    stream: &str,
    clock: Clock,
) -> io::Result<()> {
    loop {
        let found = from.fill_buf().await?;
        if found.is_empty() {
            return Ok(());
        }
        let piece = &found[..found.len().min(LONGEST)];
        let end = piece.iter().position(|&byte| byte == b'\n');
        let (text, used) = end.map_or((piece, piece.len()), |end| (&piece[..end], end + 1));
        let mark = if end.is_some() { 'F' } else { 'P' };
        let mut line = format!("{} {stream} {mark} ", clock.now()).into_bytes();
        line.extend_from_slice(text);
        line.push(b'\n');
        from.consume(used);
        // In one write, so that lines of both streams stay apart.
        to.write_all(&line)?;
    }
}
