//! Where in an object a walk is.
//!
//! A chain on the stack: no text is made until somebody has a problem to report.

use std::fmt;

/// A place inside an object, printed as the API prints field paths.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place<'a> {
    /// The object itself, or a fixed path that a walk begins at.
    Start(&'a str),
    /// A field: `spec.size`.
    Field(&'a Place<'a>, &'a str),
    /// A key of a map, printed in brackets: `properties[size]`.
    Key(&'a Place<'a>, &'a str),
    /// An entry of a list: `items[0]`.
    Index(&'a Place<'a>, usize),
}

impl<'a> Place<'a> {
    /// The object itself.
    pub(crate) const ROOT: Place<'static> = Place::Start("");

    pub(crate) fn field(&'a self, name: &'a str) -> Place<'a> {
        Place::Field(self, name)
    }

    pub(crate) fn key(&'a self, name: &'a str) -> Place<'a> {
        Place::Key(self, name)
    }

    pub(crate) fn index(&'a self, at: usize) -> Place<'a> {
        Place::Index(self, at)
    }

    fn is_root(&self) -> bool {
        matches!(self, Place::Start(""))
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Start(path) => f.write_str(path),
            Place::Field(up, name) if up.is_root() => f.write_str(name),
            Place::Field(up, name) => write!(f, "{up}.{name}"),
            Place::Key(up, name) => write!(f, "{up}[{name}]"),
            Place::Index(up, at) => write!(f, "{up}[{at}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_read_like_field_paths() {
        let spec = Place::ROOT.field("spec");
        let items = spec.field("items");
        let third = items.index(2);
        assert_eq!(third.field("name").to_string(), "spec.items[2].name");
        assert_eq!(items.key("a.b").to_string(), "spec.items[a.b]");
        assert_eq!(Place::ROOT.to_string(), "");
    }
}
