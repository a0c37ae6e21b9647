//! The static types that rules are checked with.

use std::fmt;

use crate::schema::{NodeId, Schema, Type};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum StaticType {
    /// Anything; checked at evaluation.
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Time,
    Span,
    List(Box<StaticType>),
    Map(Box<StaticType>, Box<StaticType>),
    /// An object with the properties of a schema.
    Object(NodeId),
    /// The part of metadata that rules can access: name and generateName.
    Metadata,
    Optional(Box<StaticType>),
    Quantity,
    Url,
    Ip,
    Net,
    Semver,
    Type,
    Format,
}

impl StaticType {
    /// The kind of values of `schema`; `None` when nothing about them is declared, which makes them
    /// inaccessible to rules.
    pub(super) fn of(schema: Schema<'_>) -> Option<Self> {
        let node = schema.node();
        Some(match node.ty {
            Type::Object => match schema.additional() {
                Some(additional) => Self::Map(Self::Text.into(), Self::of(additional)?.into()),
                None => Self::Object(schema.id()),
            },
            Type::Array => Self::List(Self::of(schema.items()?)?.into()),
            Type::String => Self::of_format(node.format.as_deref()),
            Type::Integer => Self::Int,
            Type::Number => Self::Double,
            Type::Boolean => Self::Bool,
            Type::IntOrString | Type::Quantity => Self::Dyn,
            Type::Any => return None,
        })
    }

    fn of_format(format: Option<&str>) -> Self {
        match format {
            Some("byte") => Self::Bytes,
            Some("duration") => Self::Span,
            Some("date" | "date-time" | "datetime") => Self::Time,
            _ => Self::Text,
        }
    }

    pub(super) fn list(of: Self) -> Self {
        Self::List(of.into())
    }

    pub(super) fn optional(of: Self) -> Self {
        Self::Optional(of.into())
    }

    /// Whether a value of one kind may be used where the other is expected. Lenient where only
    /// evaluation can tell: null, objects against maps, anything dynamic.
    pub(super) fn fits(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Dyn | Self::Null, _) | (_, Self::Dyn | Self::Null) => true,
            (Self::List(a), Self::List(b)) | (Self::Optional(a), Self::Optional(b)) => a.fits(b),
            (Self::Map(a, x), Self::Map(b, y)) => a.fits(b) && x.fits(y),
            (a, b) if a.is_object() && b.is_object() => true,
            (a, b) => a == b,
        }
    }

    pub(super) fn is_object(&self) -> bool {
        matches!(self, Self::Object(_) | Self::Metadata | Self::Map(..))
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Uint | Self::Double)
    }

    /// The joint kind of both branches of a conditional.
    pub(super) fn join(self, other: Self) -> Self {
        if self == Self::Null {
            return other;
        }
        if other == Self::Null || self == other {
            return self;
        }
        Self::Dyn
    }
}

impl fmt::Display for StaticType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Dyn => "dyn",
            Self::Null => "null",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::Text => "string",
            Self::Bytes => "bytes",
            Self::Time => "google.protobuf.Timestamp",
            Self::Span => "google.protobuf.Duration",
            Self::List(of) => return write!(f, "list({of})"),
            Self::Map(key, value) => return write!(f, "map({key}, {value})"),
            Self::Object(_) | Self::Metadata => "object",
            Self::Optional(of) => return write!(f, "optional_type({of})"),
            Self::Quantity => "kubernetes.Quantity",
            Self::Url => "kubernetes.URL",
            Self::Ip => "net.IP",
            Self::Net => "net.CIDR",
            Self::Semver => "kubernetes.Semver",
            Self::Type => "type",
            Self::Format => "kubernetes.NamedFormat",
        };
        f.write_str(name)
    }
}
