//! What a table says about a field.

/// A field of an API version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Its name in requests and answers.
    pub name: &'static str,
    /// Its name in documents.
    pub stored: &'static str,
    /// What it contains.
    pub kind: Kind,
    /// Who may change it.
    pub rule: Rule,
}

/// What a field contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// Text that is never shown.
    Secret,
    /// A whole number.
    Integer,
    /// true or false.
    Boolean,
    /// Other fields.
    Object(&'static [Field]),
    /// Objects, told apart by their field `name`, or by their position.
    List(&'static [Field]),
    /// Objects by name.
    Map(&'static [Field]),
    /// Texts by name.
    TextMap,
    /// Texts.
    TextList,
}

/// Who may change a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The client, when it creates the cluster.
    Immutable,
    /// The client, at any time.
    Mutable,
    /// The provider: what a client sends is ignored.
    ReadOnly,
    /// As immutable, but differences in case are none.
    IgnoreCase,
}

impl Field {
    const fn new(name: &'static str, kind: Kind, rule: Rule) -> Self {
        Self {
            name,
            stored: name,
            kind,
            rule,
        }
    }

    /// A field that is set when the cluster is created.
    pub const fn fixed(name: &'static str, kind: Kind) -> Self {
        Self::new(name, kind, Rule::Immutable)
    }

    /// A field that the client may change.
    pub const fn mutable(name: &'static str, kind: Kind) -> Self {
        Self::new(name, kind, Rule::Mutable)
    }

    /// A field that the provider sets.
    pub const fn read_only(name: &'static str, kind: Kind) -> Self {
        Self::new(name, kind, Rule::ReadOnly)
    }

    /// A field whose case does not matter.
    pub const fn any_case(name: &'static str) -> Self {
        Self::new(name, Kind::Text, Rule::IgnoreCase)
    }

    /// The same field, stored under another name.
    pub const fn stored_as(mut self, stored: &'static str) -> Self {
        self.stored = stored;
        self
    }
}
