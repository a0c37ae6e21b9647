//! Field paths as a chain on the stack, written out only when there is something to report.

use std::fmt;

/// The position of a walk over an object; shown as `spec.containers[0].name`.
#[derive(Debug, Clone, Copy)]
pub enum FieldPath<'a> {
    /// The object itself.
    Root,
    /// A path that was already written out.
    At(&'a str),
    /// A field of the value at a path: `spec.size`.
    Field(&'a FieldPath<'a>, &'a str),
    /// A key of the map at a path: `data[size]`.
    Key(&'a FieldPath<'a>, &'a str),
    /// An element of the list at a path: `items[0]`.
    Index(&'a FieldPath<'a>, usize),
}

impl<'a> FieldPath<'a> {
    /// A field of the value here.
    pub fn field(&'a self, name: &'a str) -> FieldPath<'a> {
        FieldPath::Field(self, name)
    }

    /// A key of the map here.
    pub fn key(&'a self, key: &'a str) -> FieldPath<'a> {
        FieldPath::Key(self, key)
    }

    /// An element of the list here.
    pub fn index(&'a self, index: usize) -> FieldPath<'a> {
        FieldPath::Index(self, index)
    }
}

impl fmt::Display for FieldPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldPath::Root => Ok(()),
            FieldPath::At(place) => f.write_str(place),
            FieldPath::Field(FieldPath::Root | FieldPath::At(""), name) => f.write_str(name),
            FieldPath::Field(parent, name) => write!(f, "{parent}.{name}"),
            FieldPath::Key(parent, key) => write!(f, "{parent}[{key}]"),
            FieldPath::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

impl From<FieldPath<'_>> for String {
    fn from(place: FieldPath<'_>) -> Self {
        place.to_string()
    }
}

impl From<&FieldPath<'_>> for String {
    fn from(place: &FieldPath<'_>) -> Self {
        place.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_as_the_api_writes_it() {
        let spec = FieldPath::Root.field("spec");
        let ports = spec.field("ports");
        assert_eq!(
            ports.index(2).field("name").to_string(),
            "spec.ports[2].name"
        );
        assert_eq!(FieldPath::At("data").key("a.b").to_string(), "data[a.b]");
        assert_eq!(FieldPath::Root.to_string(), "");
    }
}
