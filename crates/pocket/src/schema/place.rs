//! A place in an object, as a chain on the stack: written out only when there is something to say
//! about it.

use std::fmt;

/// Where a walk over an object is; shown as `spec.containers[0].name`.
#[derive(Debug, Clone, Copy)]
pub enum Place<'a> {
    /// The object itself.
    Root,
    /// A place that was already written out.
    At(&'a str),
    /// A field of the value at a place: `spec.size`.
    Field(&'a Place<'a>, &'a str),
    /// A key of the map at a place: `data[size]`.
    Key(&'a Place<'a>, &'a str),
    /// An element of the list at a place: `items[0]`.
    Index(&'a Place<'a>, usize),
}

impl<'a> Place<'a> {
    /// A field of the value here.
    pub fn field(&'a self, name: &'a str) -> Place<'a> {
        Place::Field(self, name)
    }

    /// A key of the map here.
    pub fn key(&'a self, key: &'a str) -> Place<'a> {
        Place::Key(self, key)
    }

    /// An element of the list here.
    pub fn index(&'a self, index: usize) -> Place<'a> {
        Place::Index(self, index)
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Root => Ok(()),
            Place::At(place) => f.write_str(place),
            Place::Field(Place::Root | Place::At(""), name) => f.write_str(name),
            Place::Field(parent, name) => write!(f, "{parent}.{name}"),
            Place::Key(parent, key) => write!(f, "{parent}[{key}]"),
            Place::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

impl From<Place<'_>> for String {
    fn from(place: Place<'_>) -> Self {
        place.to_string()
    }
}

impl From<&Place<'_>> for String {
    fn from(place: &Place<'_>) -> Self {
        place.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_as_the_api_writes_it() {
        let spec = Place::Root.field("spec");
        let ports = spec.field("ports");
        assert_eq!(
            ports.index(2).field("name").to_string(),
            "spec.ports[2].name"
        );
        assert_eq!(Place::At("data").key("a.b").to_string(), "data[a.b]");
        assert_eq!(Place::Root.to_string(), "");
    }
}
