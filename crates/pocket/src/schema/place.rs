//! A place in an object, as a chain on the stack: written out only when there is something to say
//! about it.

use std::fmt;

/// Where a walk over an object is; shown as `spec.containers[0].name`.
#[derive(Debug, Clone, Copy)]
pub enum Place<'a> {
    /// The object itself.
    Root,
    /// A field of the value at a place.
    Field(&'a Place<'a>, &'a str),
    /// An element of the list at a place.
    Item(&'a Place<'a>, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Self::Root, name) => f.write_str(name),
            Self::Field(parent, name) => write!(f, "{parent}.{name}"),
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}
