//! Why things are as they are: a catalogue of errors, with what to do about each.
//!
//! Every refusal, failure and wait that a person meets has a code. The code leads to a title, the
//! cause in general, a remedy, and whether it passes by itself; the message beside it says what
//! happened in particular. The catalogue is a table in the program, so it can be asked offline.

mod catalogue;
mod near;
#[cfg(test)]
mod tests;

use std::{error::Error, fmt};

use serde::Serialize;

pub use self::{catalogue::all, near::nearest};

/// Whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Class {
    /// Whoever asked can mend it.
    UserFixable,
    /// Somebody else must act first.
    WaitingOnSomeone,
    /// It is tried again without anybody's help.
    PlatformRetrying,
    /// A bug of ours.
    PlatformBug,
}

/// Whether it is worth trying again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Retry {
    /// Not before something changes.
    Never,
    /// Later, at growing intervals.
    WithBackoff,
    /// It is being done.
    Automatic,
}

/// An entry of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// `NT-<area>-<number>`; once given, it means this for ever.
    pub code: Code,
    /// What it is, in a few words.
    pub title: &'static str,
    /// What usually leads to it.
    pub cause: &'static str,
    /// What to do.
    pub remedy: &'static str,
    /// Whose turn it is.
    pub class: Class,
    /// Whether to try again.
    pub retry: Retry,
    /// The status over HTTP.
    pub http: u16,
}

/// The name of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Code(pub &'static str);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// An error that people meet, and which is therefore in the catalogue.
pub trait Coded {
    /// Its entry.
    fn code(&self) -> Code;
}

/// The message of an error and of each of its causes.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// The entry of a code, as people type it.
pub fn find(code: &str) -> Option<&'static Entry> {
    all().find(|entry| entry.code.0.eq_ignore_ascii_case(code.trim()))
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}  {}\n", self.code, self.title)?;
        writeln!(f, "Why      {}", self.cause)?;
        writeln!(f, "Do       {}", self.remedy)?;
        writeln!(f, "Turn     {}", self.class)?;
        write!(f, "Retry    {}", self.retry)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UserFixable => "yours",
            Self::WaitingOnSomeone => "somebody else's",
            Self::PlatformRetrying => "nobody's; it is tried again by itself",
            Self::PlatformBug => "ours: please report it",
        })
    }
}

impl fmt::Display for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Never => "not before something has changed",
            Self::WithBackoff => "later, at growing intervals",
            Self::Automatic => "is being done",
        })
    }
}
