//! The points at which faults strike.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A point that requests and events pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// A write is about to reach the server.
    WriteBefore,
    /// A write is committed, and its answer is not sent yet.
    WriteAfter,
    /// A single object is read.
    Read,
    /// A page of a list is read.
    ListPage,
    /// A watch is opened.
    WatchOpen,
    /// A watch delivers an event.
    WatchEvent,
    /// An external call is about to be sent.
    ExtBefore,
    /// An external call has taken effect, and its answer is not sent yet.
    ExtAfter,
}

impl Point {
    /// The points of a run in one process.
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

    /// Points of the grammar that only a run with a database or sockets has.
    pub const UNSUPPORTED: [&str; 13] = [
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

    /// Its name in plans.
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

/// The verb of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    /// A patch or server-side apply.
    Patch,
    Delete,
    /// A call to an external system.
    Call,
}

impl Verb {
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

    /// Its name in plans.
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

    /// Whether it changes an object on the server.
    pub fn writes(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch | Self::Call)
    }
}

/// Selects requests and events at a point. An absent field matches anything.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Filter {
    pub verb: Option<Verb>,
    /// The kind in its plural, with the subresource after a slash.
    pub kind: Option<String>,
    /// A star at the end matches any suffix.
    pub namespace: Option<String>,
    /// A star at the end matches any suffix.
    pub name: Option<String>,
    /// The name of an external call.
    pub call: Option<String>,
}

impl Filter {
    /// Whether it matches a request or event.
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

/// Selects by position among the requests and events that the filter matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Nth {
    /// This one only; the first is 1.
    At(u32),
    /// All from the first number to the second.
    Span(u32, u32),
    /// Every one whose position is a multiple of this number.
    Every(u32),
}

impl Nth {
    /// Whether it selects position `count`.
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

/// Selects requests by their actor.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ActorFilter {
    /// Those of any process under test.
    Any,
    /// Those of the actor with this name.
    Named(String),
}

impl ActorFilter {
    /// Whether it matches `actor`.
    pub fn is(&self, actor: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Named(name) => name == actor,
        }
    }
}

impl fmt::Display for ActorFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Named(name) => f.write_str(name),
        }
    }
}

/// The plural of a kind, as in its path: plans may say `EndpointSlice` or `endpointslices`.
pub fn plural(kind: &str) -> String {
    let lower = kind.to_ascii_lowercase();
    if lower == kind {
        return lower;
    }
    if let Some(stem) = lower.strip_suffix('y') {
        return format!("{stem}ies");
    }
    let sibilants = ["s", "x", "ch", "sh"];
    if lower == "endpoints" {
        lower
    } else if sibilants.iter().any(|end| lower.ends_with(end)) {
        format!("{lower}es")
    } else {
        format!("{lower}s")
    }
}
