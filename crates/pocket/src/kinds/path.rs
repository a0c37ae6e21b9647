//! The path of a field, kept as links to the parents so that it costs nothing until it is shown.

use std::fmt;

/// Where a value is in its object.
#[derive(Debug, Clone, Copy)]
pub(super) enum Path<'a> {
    /// The object itself.
    Root,
    /// A path that was already written out.
    At(&'a str),
    /// A property of a struct.
    Field(&'a Path<'a>, &'a str),
    /// A value of a map.
    Key(&'a Path<'a>, &'a str),
    /// An element of a list.
    Index(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    pub(super) fn field(&'a self, name: &'a str) -> Path<'a> {
        Path::Field(self, name)
    }

    pub(super) fn key(&'a self, key: &'a str) -> Path<'a> {
        Path::Key(self, key)
    }

    pub(super) fn index(&'a self, index: usize) -> Path<'a> {
        Path::Index(self, index)
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::At(path) => f.write_str(path),
            Path::Field(Path::Root | Path::At(""), name) => f.write_str(name),
            Path::Field(parent, name) => write!(f, "{parent}.{name}"),
            Path::Key(parent, key) => write!(f, "{parent}[{key}]"),
            Path::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

impl From<Path<'_>> for String {
    fn from(path: Path<'_>) -> String {
        path.to_string()
    }
}

impl From<&Path<'_>> for String {
    fn from(path: &Path<'_>) -> String {
        path.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::Path;

    #[test]
    fn a_path_reads_as_the_api_writes_it() {
        let spec = Path::Root.field("spec");
        let ports = spec.field("ports");
        assert_eq!(
            ports.index(2).field("name").to_string(),
            "spec.ports[2].name"
        );
        assert_eq!(Path::At("data").key("a.b").to_string(), "data[a.b]");
    }
}
