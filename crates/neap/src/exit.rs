//! Exit codes, and how a failure is printed.
//!
//! Every failure states what failed, why, and what to do, and has a code whose meaning never changes.
//! It is printed once, here.

use std::{
    error::Error,
    fmt,
    io::{self, Write},
    process::ExitCode,
};

use crate::{
    printable::{indented, printable_line},
    symbols::Symbols,
};

pub(crate) use neap_kit::why::chain;

/// The column in which reason and remedy begin.
const MARGIN: usize = 7;

/// The exit code of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command failed.
    Failed = 1,
    /// The arguments are invalid. The command-line parser reports most of these itself.
    Usage = 2,
    /// The object, file or kind does not exist.
    NotFound = 3,
    /// The server rejected the credentials or the permissions of the user.
    NotAllowed = 4,
    /// The awaited state was not reached in time.
    TimedOut = 5,
    /// A precondition is not met; nothing was changed.
    Refused = 6,
    /// The server does not respond.
    Unreachable = 7,
    /// A signal stopped the command before it was done.
    Interrupted = 130,
}

impl Exit {
    /// The exit code for a file that cannot be used: one that does not exist is not found.
    pub(crate) fn of_file(error: &(dyn Error + 'static)) -> Self {
        let mut cause = Some(error);
        while let Some(error) = cause {
            let found = error.downcast_ref::<io::Error>();
            if found.is_some_and(|error| error.kind() == io::ErrorKind::NotFound) {
                return Self::NotFound;
            }
            cause = error.source();
        }
        Self::Refused
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// A failure, as it is printed for the user.
#[derive(Debug)]
pub(crate) struct Failure {
    code: &'static str,
    exit: Exit,
    what: String,
    why: String,
    remedy: String,
    /// Not printed, because the reader of the output closed the pipe on purpose.
    quiet: bool,
}

impl Failure {
    /// `what` failed for the reason `why`.
    pub(crate) fn new(code: &'static str, exit: Exit, what: &str, why: &str) -> Self {
        Self {
            code,
            exit,
            what: what.to_owned(),
            why: why.to_owned(),
            remedy: String::new(),
            quiet: false,
        }
    }

    /// Adds what the user can do.
    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }

    /// Standard output cannot be written.
    pub(crate) fn output(error: &io::Error) -> Self {
        let failure = Self::new(
            "NT-CLI-0001",
            Exit::Failed,
            "cannot write to standard output",
            &error.to_string(),
        );
        Self {
            // As in `neap explain | head -1`, which is no error.
            quiet: error.kind() == io::ErrorKind::BrokenPipe,
            ..failure.remedy("check the destination of the output: a closed pipe or a full disk")
        }
    }

    /// The reason of the failure.
    pub(crate) fn why(&self) -> &str {
        &self.why
    }

    /// What the user can do.
    pub(crate) fn advice(&self) -> &str {
        &self.remedy
    }

    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// Prints the failure: a line with the summary and the code, then reason and remedy.
    pub(crate) fn print(&self, out: &mut dyn Write, symbols: Symbols) -> io::Result<()> {
        if self.quiet {
            return Ok(());
        }
        let what = printable_line(&self.what);
        writeln!(out, "{} {what}  {}", symbols.failed, self.code)?;
        writeln!(out, "  why  {}", indented(&self.why, MARGIN))?;
        if !self.remedy.is_empty() {
            writeln!(out, "  do   {}", indented(&self.remedy, MARGIN))?;
        }
        Ok(())
    }
}

/// One line, without the remedy.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.what, self.why, self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_does_not_exist_is_not_found() {
        let missing = std::fs::read("/nowhere/at/all").unwrap_err();
        assert_eq!(Exit::of_file(&missing), Exit::NotFound);
        let damaged = io::Error::from(io::ErrorKind::InvalidData);
        assert_eq!(Exit::of_file(&damaged), Exit::Refused);
    }

    #[test]
    fn what_a_server_says_stays_below_why() {
        let failure = Failure::new(
            "NT-CLI-0006",
            Exit::Failed,
            "cannot read a\u{7}\nb",
            "no\u{1b}[2J\n  do   run this",
        );
        let mut out = Vec::new();
        failure.print(&mut out, Symbols::ASCII).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "x cannot read a\\u{7}\\nb  NT-CLI-0006\n  why  no\\u{1b}[2J\n         do   run this\n"
        );
    }

    #[test]
    fn failure_prints_summary_reason_remedy_and_code() {
        let failure = Failure::new(
            "NT-UP-0001",
            Exit::Refused,
            "cannot listen",
            "address in use",
        )
        .remedy("neap up --listen 127.0.0.1:0");
        let mut out = Vec::new();
        failure.print(&mut out, Symbols::ASCII).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "x cannot listen  NT-UP-0001\n  why  address in use\n  do   neap up --listen 127.0.0.1:0\n"
        );
    }
}
