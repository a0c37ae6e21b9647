//! How the process ends: the exit codes, and what a person is told about a failure.
//!
//! Every failure says what failed, why, what to do, and carries a code that never changes its
//! meaning. It is printed once, here.

use std::{
    fmt,
    io::{self, Write},
    process::ExitCode,
};

use crate::symbols::Symbols;

pub(crate) use neap_kit::why::chain;

/// What the exit code of a failure means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It was tried, and it failed.
    Failed = 1,
    /// What was asked for is no question. Most of it the parser of the command line answers.
    Usage = 2,
    /// There is no such thing.
    NotFound = 3,
    /// The server does not know who asks, or does not allow it.
    NotAllowed = 4,
    /// It did not come to that in time.
    TimedOut = 5,
    /// A precondition does not hold; nothing was done.
    Refused = 6,
    /// The server does not answer.
    Unreachable = 7,
    /// Told to stop before it was done.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// A failure, as a person is told about it.
#[derive(Debug)]
pub(crate) struct Failure {
    code: &'static str,
    exit: Exit,
    what: String,
    why: String,
    remedy: String,
    /// Whoever would be told has gone away on purpose.
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

    /// What the person can do about it.
    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }

    /// Nobody takes what a command prints.
    pub(crate) fn output(error: &io::Error) -> Self {
        let failure = Self::new(
            "NT-CLI-0001",
            Exit::Failed,
            "cannot write to standard output",
            &error.to_string(),
        );
        Self {
            // As in `neap explain | head -1`: nothing is amiss.
            quiet: error.kind() == io::ErrorKind::BrokenPipe,
            ..failure.remedy("check where the output goes: a closed pipe, a full disk")
        }
    }

    /// Why it failed.
    pub(crate) fn why(&self) -> &str {
        &self.why
    }

    /// What the person can do about it.
    pub(crate) fn advice(&self) -> &str {
        &self.remedy
    }

    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// Prints the failure: one line that says it all, then the details.
    pub(crate) fn print(&self, out: &mut dyn Write, symbols: Symbols) -> io::Result<()> {
        if self.quiet {
            return Ok(());
        }
        writeln!(out, "{} {}  {}", symbols.failed, self.what, self.code)?;
        writeln!(out, "  why  {}", self.why)?;
        if !self.remedy.is_empty() {
            writeln!(out, "  do   {}", self.remedy)?;
        }
        Ok(())
    }
}

/// In one line, without the remedy.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.what, self.why, self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_says_what_why_remedy_and_code() {
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
