//! The catalogue of errors, with a remedy for each.
//!
//! Every error that users meet has a code. The code leads to a title, the usual cause, a remedy, and
//! whether a retry helps; the message of the error itself contains the particulars. The catalogue is a
//! table in the program, so it is available offline.

mod catalogue;
mod near;
#[cfg(test)]
mod tests;

use std::{error::Error, fmt, sync::Arc};

use kube::core::Status;
use serde::Serialize;

pub use self::catalogue::all;

/// Who has to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Class {
    /// The user can fix it.
    UserFixable,
    /// Another person or system must act first.
    WaitingOnSomeone,
    /// No action is needed: the platform retries.
    PlatformRetrying,
    /// The developers: it is a bug.
    PlatformBug,
}

/// Whether a retry helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Retry {
    /// Not before something has changed.
    Never,
    /// Later, with growing delays.
    WithBackoff,
    /// The platform retries by itself.
    Automatic,
}

/// An entry of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CatalogueEntry {
    /// `NT-<area>-<number>`; its meaning never changes.
    pub code: Code,
    /// The error in a few words.
    pub title: &'static str,
    /// The usual cause.
    pub cause: &'static str,
    /// What to do about it.
    pub remedy: &'static str,
    /// Who has to act.
    pub class: Class,
    /// Whether a retry helps.
    pub retry: Retry,
    /// The HTTP status for this error.
    pub http: u16,
}

/// All entries of a program: those of this crate, and those that its areas register. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Catalogue {
    parts: Arc<[&'static [CatalogueEntry]]>,
}

/// The code of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Code(pub &'static str);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// An error that users meet, and that is therefore in the catalogue.
pub trait Coded {
    /// The code of its entry.
    fn code(&self) -> Code;
}

/// The message of an error, followed by those of its causes.
pub fn chain(error: &dyn Error) -> String {
    let mut text = message(error);
    let mut cause = error.source();
    while let Some(error) = cause {
        if as_status(error).is_some() {
            // It is the response that the error before it has shown.
            break;
        }
        text.push_str(": ");
        text.push_str(&message(error));
        cause = error.source();
    }
    text
}

/// The message of an error. That of a refused request shows all fields of the API server's response; users read its
/// message and its reason.
fn message(error: &dyn Error) -> String {
    let Some(status) = error.source().and_then(as_status) else {
        return error.to_string();
    };
    match (&status.message[..], &status.reason[..]) {
        ("", reason) => reason.to_owned(),
        (message, "") => message.to_owned(),
        (message, reason) => format!("{message} ({reason})"),
    }
}

fn as_status<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Status> {
    let boxed = error.downcast_ref::<Box<Status>>().map(|it| &**it);
    boxed.or_else(|| error.downcast_ref())
}

/// What is wrong with an entry whose code has to start with `prefix`, in words for its author.
pub fn problems(entry: &CatalogueEntry, prefix: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let number = entry.code.0.strip_prefix(prefix).unwrap_or_default();
    let is_number = matches!(number.len(), 3 | 4) && number.parse::<u16>().is_ok();
    let sentence = |text: &str| text.len() > 20 && text.ends_with('.');
    for (fine, problem) in [
        (
            is_number,
            format!("it is not {prefix} and three or four digits"),
        ),
        (
            sentence(entry.cause),
            "its cause is not a sentence".to_owned(),
        ),
        (
            sentence(entry.remedy),
            "its remedy is not a sentence".to_owned(),
        ),
        (
            entry.title.starts_with(|first: char| first.is_lowercase()),
            "its title does not start in lower case".to_owned(),
        ),
        (
            (400..600).contains(&entry.http),
            format!("{} is no HTTP status of an error", entry.http),
        ),
        (
            (entry.class == Class::PlatformBug) == (entry.http == 500),
            "only a bug is an internal error, 500".to_owned(),
        ),
    ] {
        if !fine {
            problems.push(format!("{}: {problem}", entry.code));
        }
    }
    problems
}

/// The entry of a code of this crate or of the command line, in any case.
pub fn find(code: &str) -> Option<&'static CatalogueEntry> {
    all().find(|entry| entry.code.0.eq_ignore_ascii_case(code.trim()))
}

impl fmt::Display for CatalogueEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}  {}\n", self.code, self.title)?;
        writeln!(f, "Why      {}", self.cause)?;
        writeln!(f, "Do       {}", self.remedy)?;
        writeln!(f, "Owner    {}", self.class)?;
        write!(f, "Retry    {}", self.retry)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UserFixable => "you",
            Self::WaitingOnSomeone => "another person or system",
            Self::PlatformRetrying => "none: it is retried automatically",
            Self::PlatformBug => "the developers: please report it",
        })
    }
}

impl fmt::Display for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Never => "not before something has changed",
            Self::WithBackoff => "later, with growing delays",
            Self::Automatic => "automatic",
        })
    }
}
