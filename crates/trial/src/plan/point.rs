//! Where a fault strikes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A place that requests and events pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// A write is about to reach the server.
    WriteBefore,
    /// A write is committed, and its answer is not sent yet.
    WriteAfter,
    /// One object is read.
    Read,
    /// A page of a list is read.
    ListPage,
    /// A watch is opened.
    WatchOpen,
    /// A watch tells of a change.
    WatchEvent,
    /// A system outside is about to be asked.
    ExtBefore,
    /// A system outside has done what it was asked, and its answer is not sent yet.
    ExtAfter,
}

impl Point {
    /// Those that a run in one process has.
    pub const ALL: [Self; 8] = [
        Self::WriteBefore,
        Self::WriteAfter,
        Self::Read,
        Self::ListPage,
        Self::WatchOpen,
        Self::WatchEvent,
        Self::ExtBefore,
        Self::ExtAfter,
    ];

    /// Those of the grammar that only a run with a database or sockets has.
    pub const ELSEWHERE: [&str; 13] = [
        "sql.before",
        "sql.after",
        "commit.before",
        "commit.after",
        "lease.renew",
        "timer",
        "quiesce",
        "step",
        "conn.accept",
        "conn.head",
        "conn.body",
        "upstream.dial",
        "upstream.byte",
    ];

    /// How plans call it.
    pub fn word(self) -> &'static str {
        match self {
            Self::WriteBefore => "write.before",
            Self::WriteAfter => "write.after",
            Self::Read => "read",
            Self::ListPage => "list.page",
            Self::WatchOpen => "watch.open",
            Self::WatchEvent => "watch.event",
            Self::ExtBefore => "ext.before",
            Self::ExtAfter => "ext.after",
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// What is done to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Verb {
    /// It is read.
    Get,
    /// Many are read.
    List,
    /// They are watched.
    Watch,
    /// It is made.
    Create,
    /// It is replaced.
    Update,
    /// It is patched or applied.
    Patch,
    /// It is deleted.
    Delete,
    /// A system outside is asked for something.
    Call,
}

impl Verb {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Get,
        Self::List,
        Self::Watch,
        Self::Create,
        Self::Update,
        Self::Patch,
        Self::Delete,
        Self::Call,
    ];

    /// How plans call it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::Call => "call",
        }
    }

    /// Whether it changes something of the server.
    pub fn writes(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch | Self::Call)
    }
}

/// Which of the things that pass a point are meant. What is not said may be anything.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Filter {
    /// What is done.
    pub verb: Option<Verb>,
    /// To which kind, in its plural; with its subresource after a slash.
    pub kind: Option<String>,
    /// In which namespace. A star at the end stands for anything.
    pub namespace: Option<String>,
    /// Under which name. A star at the end stands for anything.
    pub name: Option<String>,
    /// What is asked of a system outside.
    pub call: Option<String>,
}

impl Filter {
    /// Whether it means something that passes a point.
    pub fn fits(&self, verb: Verb, kind: &str, namespace: &str, name: &str) -> bool {
        self.verb.is_none_or(|wanted| wanted == verb)
            && self.kind.as_deref().is_none_or(|wanted| wanted == kind)
            && fits(self.namespace.as_deref(), namespace)
            && fits(self.name.as_deref(), name)
            && (self.call.is_none() || verb == Verb::Call && self.call.as_deref() == Some(kind))
    }
}

fn fits(pattern: Option<&str>, text: &str) -> bool {
    match pattern {
        None => true,
        Some(pattern) => match pattern.strip_suffix('*') {
            Some(beginning) => text.starts_with(beginning),
            None => pattern == text,
        },
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(verb) = self.verb {
            write!(f, " verb={}", verb.word())?;
        }
        let texts = [
            ("kind", &self.kind),
            ("ns", &self.namespace),
            ("name", &self.name),
            ("call", &self.call),
        ];
        for (word, text) in texts {
            if let Some(text) = text {
                write!(f, " {word}={text}")?;
            }
        }
        Ok(())
    }
}

/// At the how manieth of the things that the filter means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Nth {
    /// At this one and no other; the first is 1.
    At(u32),
    /// At all from this to that one.
    Span(u32, u32),
    /// At each that this number divides.
    Every(u32),
}

impl Nth {
    /// Whether it means the `count`th.
    pub fn means(self, count: u32) -> bool {
        match self {
            Self::At(at) => count == at,
            Self::Span(first, last) => (first..=last).contains(&count),
            Self::Every(step) => count.is_multiple_of(step),
        }
    }
}

impl fmt::Display for Nth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(at) => write!(f, " #{at}"),
            Self::Span(first, last) => write!(f, " #{first}..{last}"),
            Self::Every(1) => Ok(()),
            Self::Every(step) => write!(f, " #every {step}"),
        }
    }
}

/// Whose requests are meant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Who {
    /// Everybody's who is under trial.
    Any,
    /// Those of the actor with this name.
    Named(String),
}

impl Who {
    /// Whether `actor` is meant.
    pub fn is(&self, actor: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Named(name) => name == actor,
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Named(name) => f.write_str(name),
        }
    }
}

/// A kind as its path has it: people write `EndpointSlice` or `endpointslices`.
pub fn plural(kind: &str) -> String {
    let lower = kind.to_ascii_lowercase();
    if lower == kind {
        return lower;
    }
    if let Some(stem) = lower.strip_suffix('y') {
        return format!("{stem}ies");
    }
    let hisses = ["s", "x", "ch", "sh"];
    if lower == "endpoints" {
        lower
    } else if hisses.iter().any(|end| lower.ends_with(end)) {
        format!("{lower}es")
    } else {
        format!("{lower}s")
    }
}
