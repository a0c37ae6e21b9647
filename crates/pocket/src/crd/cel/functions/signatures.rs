//! The table of functions with their parameter and result types.

use super::super::kind::StaticType;

/// The type of a parameter.
#[derive(Clone, Copy)]
pub(in super::super) enum Takes {
    Any,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Time,
    Span,
    List,
    Texts,
    Map,
    Optional,
    Quantity,
    Url,
    Ip,
    Net,
    Semver,
    Format,
}

/// The type of a result.
#[derive(Clone, Copy)]
pub(in super::super) enum Gives {
    Dyn,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Time,
    Span,
    Texts,
    Query,
    Quantity,
    Url,
    Ip,
    Net,
    Type,
    Semver,
    Format,
    OptionalFormat,
    OptionalTexts,
    /// The type inside the target list or optional.
    Inner,
    /// The type of the target.
    Target,
    /// An optional of the first argument.
    OptionalOf,
    /// An optional of any type.
    Optional,
}

/// Name, target, arguments, result.
pub(in super::super) type Signature = (&'static str, Option<Takes>, &'static [Takes], Gives);

use Takes as T;

/// Every function, overloads side by side.
pub(in super::super) const SIGNATURES: &[Signature] = &[
    ("size", None, &[T::Text], Gives::Int),
    ("size", None, &[T::Bytes], Gives::Int),
    ("size", None, &[T::List], Gives::Int),
    ("size", None, &[T::Map], Gives::Int),
    ("size", Some(T::Text), &[], Gives::Int),
    ("size", Some(T::Bytes), &[], Gives::Int),
    ("size", Some(T::List), &[], Gives::Int),
    ("size", Some(T::Map), &[], Gives::Int),
    ("dyn", None, &[T::Any], Gives::Dyn),
    ("type", None, &[T::Any], Gives::Type),
    ("int", None, &[T::Int], Gives::Int),
    ("int", None, &[T::Uint], Gives::Int),
    ("int", None, &[T::Double], Gives::Int),
    ("int", None, &[T::Text], Gives::Int),
    ("int", None, &[T::Time], Gives::Int),
    ("int", None, &[T::Span], Gives::Int),
    ("uint", None, &[T::Uint], Gives::Uint),
    ("uint", None, &[T::Int], Gives::Uint),
    ("uint", None, &[T::Double], Gives::Uint),
    ("uint", None, &[T::Text], Gives::Uint),
    ("double", None, &[T::Double], Gives::Double),
    ("double", None, &[T::Int], Gives::Double),
    ("double", None, &[T::Uint], Gives::Double),
    ("double", None, &[T::Text], Gives::Double),
    ("bool", None, &[T::Bool], Gives::Bool),
    ("bool", None, &[T::Text], Gives::Bool),
    ("string", None, &[T::Text], Gives::Text),
    ("string", None, &[T::Bool], Gives::Text),
    ("string", None, &[T::Int], Gives::Text),
    ("string", None, &[T::Uint], Gives::Text),
    ("string", None, &[T::Double], Gives::Text),
    ("string", None, &[T::Bytes], Gives::Text),
    ("string", None, &[T::Time], Gives::Text),
    ("string", None, &[T::Span], Gives::Text),
    ("string", None, &[T::Ip], Gives::Text),
    ("string", None, &[T::Net], Gives::Text),
    ("bytes", None, &[T::Text], Gives::Bytes),
    ("bytes", None, &[T::Bytes], Gives::Bytes),
    ("timestamp", None, &[T::Text], Gives::Time),
    ("timestamp", None, &[T::Int], Gives::Time),
    ("timestamp", None, &[T::Time], Gives::Time),
    ("duration", None, &[T::Text], Gives::Span),
    ("duration", None, &[T::Span], Gives::Span),
    ("getFullYear", Some(T::Time), &[], Gives::Int),
    ("getFullYear", Some(T::Time), &[T::Text], Gives::Int),
    ("getMonth", Some(T::Time), &[], Gives::Int),
    ("getMonth", Some(T::Time), &[T::Text], Gives::Int),
    ("getDate", Some(T::Time), &[], Gives::Int),
    ("getDate", Some(T::Time), &[T::Text], Gives::Int),
    ("getDayOfMonth", Some(T::Time), &[], Gives::Int),
    ("getDayOfMonth", Some(T::Time), &[T::Text], Gives::Int),
    ("getDayOfWeek", Some(T::Time), &[], Gives::Int),
    ("getDayOfWeek", Some(T::Time), &[T::Text], Gives::Int),
    ("getDayOfYear", Some(T::Time), &[], Gives::Int),
    ("getDayOfYear", Some(T::Time), &[T::Text], Gives::Int),
    ("getHours", Some(T::Time), &[], Gives::Int),
    ("getHours", Some(T::Time), &[T::Text], Gives::Int),
    ("getHours", Some(T::Span), &[], Gives::Int),
    ("getMinutes", Some(T::Time), &[], Gives::Int),
    ("getMinutes", Some(T::Time), &[T::Text], Gives::Int),
    ("getMinutes", Some(T::Span), &[], Gives::Int),
    ("getSeconds", Some(T::Time), &[], Gives::Int),
    ("getSeconds", Some(T::Time), &[T::Text], Gives::Int),
    ("getSeconds", Some(T::Span), &[], Gives::Int),
    ("getMilliseconds", Some(T::Time), &[], Gives::Int),
    ("getMilliseconds", Some(T::Time), &[T::Text], Gives::Int),
    ("getMilliseconds", Some(T::Span), &[], Gives::Int),
    ("contains", Some(T::Text), &[T::Text], Gives::Bool),
    ("startsWith", Some(T::Text), &[T::Text], Gives::Bool),
    ("endsWith", Some(T::Text), &[T::Text], Gives::Bool),
    ("matches", Some(T::Text), &[T::Text], Gives::Bool),
    ("matches", None, &[T::Text, T::Text], Gives::Bool),
    ("find", Some(T::Text), &[T::Text], Gives::Text),
    ("findAll", Some(T::Text), &[T::Text], Gives::Texts),
    ("findAll", Some(T::Text), &[T::Text, T::Int], Gives::Texts),
    ("charAt", Some(T::Text), &[T::Int], Gives::Text),
    ("indexOf", Some(T::Text), &[T::Text], Gives::Int),
    ("indexOf", Some(T::Text), &[T::Text, T::Int], Gives::Int),
    ("lastIndexOf", Some(T::Text), &[T::Text], Gives::Int),
    ("lastIndexOf", Some(T::Text), &[T::Text, T::Int], Gives::Int),
    ("lowerAscii", Some(T::Text), &[], Gives::Text),
    ("upperAscii", Some(T::Text), &[], Gives::Text),
    ("replace", Some(T::Text), &[T::Text, T::Text], Gives::Text),
    (
        "replace",
        Some(T::Text),
        &[T::Text, T::Text, T::Int],
        Gives::Text,
    ),
    ("split", Some(T::Text), &[T::Text], Gives::Texts),
    ("split", Some(T::Text), &[T::Text, T::Int], Gives::Texts),
    ("substring", Some(T::Text), &[T::Int], Gives::Text),
    ("substring", Some(T::Text), &[T::Int, T::Int], Gives::Text),
    ("trim", Some(T::Text), &[], Gives::Text),
    ("format", Some(T::Text), &[T::List], Gives::Text),
    ("strings.quote", None, &[T::Text], Gives::Text),
    ("join", Some(T::Texts), &[], Gives::Text),
    ("join", Some(T::Texts), &[T::Text], Gives::Text),
    ("isSorted", Some(T::List), &[], Gives::Bool),
    ("sum", Some(T::List), &[], Gives::Inner),
    ("min", Some(T::List), &[], Gives::Inner),
    ("max", Some(T::List), &[], Gives::Inner),
    ("indexOf", Some(T::List), &[T::Any], Gives::Int),
    ("lastIndexOf", Some(T::List), &[T::Any], Gives::Int),
    ("sets.contains", None, &[T::List, T::List], Gives::Bool),
    ("sets.equivalent", None, &[T::List, T::List], Gives::Bool),
    ("sets.intersects", None, &[T::List, T::List], Gives::Bool),
    ("url", None, &[T::Text], Gives::Url),
    ("isURL", None, &[T::Text], Gives::Bool),
    ("getScheme", Some(T::Url), &[], Gives::Text),
    ("getHost", Some(T::Url), &[], Gives::Text),
    ("getHostname", Some(T::Url), &[], Gives::Text),
    ("getPort", Some(T::Url), &[], Gives::Text),
    ("getEscapedPath", Some(T::Url), &[], Gives::Text),
    ("getQuery", Some(T::Url), &[], Gives::Query),
    ("ip", None, &[T::Text], Gives::Ip),
    ("isIP", None, &[T::Text], Gives::Bool),
    ("ip.isCanonical", None, &[T::Text], Gives::Bool),
    ("family", Some(T::Ip), &[], Gives::Int),
    ("isUnspecified", Some(T::Ip), &[], Gives::Bool),
    ("isLoopback", Some(T::Ip), &[], Gives::Bool),
    ("isLinkLocalMulticast", Some(T::Ip), &[], Gives::Bool),
    ("isLinkLocalUnicast", Some(T::Ip), &[], Gives::Bool),
    ("isGlobalUnicast", Some(T::Ip), &[], Gives::Bool),
    ("cidr", None, &[T::Text], Gives::Net),
    ("isCIDR", None, &[T::Text], Gives::Bool),
    ("containsIP", Some(T::Net), &[T::Text], Gives::Bool),
    ("containsIP", Some(T::Net), &[T::Ip], Gives::Bool),
    ("containsCIDR", Some(T::Net), &[T::Text], Gives::Bool),
    ("containsCIDR", Some(T::Net), &[T::Net], Gives::Bool),
    ("ip", Some(T::Net), &[], Gives::Ip),
    ("masked", Some(T::Net), &[], Gives::Net),
    ("prefixLength", Some(T::Net), &[], Gives::Int),
    ("quantity", None, &[T::Text], Gives::Quantity),
    ("isQuantity", None, &[T::Text], Gives::Bool),
    ("sign", Some(T::Quantity), &[], Gives::Int),
    ("isInteger", Some(T::Quantity), &[], Gives::Bool),
    ("asInteger", Some(T::Quantity), &[], Gives::Int),
    ("asApproximateFloat", Some(T::Quantity), &[], Gives::Double),
    ("add", Some(T::Quantity), &[T::Quantity], Gives::Quantity),
    ("add", Some(T::Quantity), &[T::Int], Gives::Quantity),
    ("sub", Some(T::Quantity), &[T::Quantity], Gives::Quantity),
    ("sub", Some(T::Quantity), &[T::Int], Gives::Quantity),
    ("isLessThan", Some(T::Quantity), &[T::Quantity], Gives::Bool),
    (
        "isGreaterThan",
        Some(T::Quantity),
        &[T::Quantity],
        Gives::Bool,
    ),
    ("compareTo", Some(T::Quantity), &[T::Quantity], Gives::Int),
    ("semver", None, &[T::Text], Gives::Semver),
    ("semver", None, &[T::Text, T::Bool], Gives::Semver),
    ("isSemver", None, &[T::Text], Gives::Bool),
    ("isSemver", None, &[T::Text, T::Bool], Gives::Bool),
    ("major", Some(T::Semver), &[], Gives::Int),
    ("minor", Some(T::Semver), &[], Gives::Int),
    ("patch", Some(T::Semver), &[], Gives::Int),
    ("isLessThan", Some(T::Semver), &[T::Semver], Gives::Bool),
    ("isGreaterThan", Some(T::Semver), &[T::Semver], Gives::Bool),
    ("compareTo", Some(T::Semver), &[T::Semver], Gives::Int),
    ("format.dns1123Label", None, &[], Gives::Format),
    ("format.dns1123Subdomain", None, &[], Gives::Format),
    ("format.dns1035Label", None, &[], Gives::Format),
    ("format.qualifiedName", None, &[], Gives::Format),
    ("format.dns1123LabelPrefix", None, &[], Gives::Format),
    ("format.dns1123SubdomainPrefix", None, &[], Gives::Format),
    ("format.dns1035LabelPrefix", None, &[], Gives::Format),
    ("format.labelValue", None, &[], Gives::Format),
    ("format.uri", None, &[], Gives::Format),
    ("format.uuid", None, &[], Gives::Format),
    ("format.byte", None, &[], Gives::Format),
    ("format.date", None, &[], Gives::Format),
    ("format.datetime", None, &[], Gives::Format),
    ("format.named", None, &[T::Text], Gives::OptionalFormat),
    (
        "validate",
        Some(T::Format),
        &[T::Text],
        Gives::OptionalTexts,
    ),
    ("optional.none", None, &[], Gives::Optional),
    ("optional.of", None, &[T::Any], Gives::OptionalOf),
    (
        "optional.ofNonZeroValue",
        None,
        &[T::Any],
        Gives::OptionalOf,
    ),
    ("hasValue", Some(T::Optional), &[], Gives::Bool),
    ("value", Some(T::Optional), &[], Gives::Inner),
    ("or", Some(T::Optional), &[T::Optional], Gives::Target),
    ("orValue", Some(T::Optional), &[T::Any], Gives::Inner),
];

impl Takes {
    pub(in super::super) fn accepts(self, kind: &StaticType) -> bool {
        match (self, kind) {
            (Self::Any, _)
            | (_, StaticType::Dyn)
            | (Self::Bool, StaticType::Bool)
            | (Self::Int, StaticType::Int)
            | (Self::Uint, StaticType::Uint)
            | (Self::Double, StaticType::Double)
            | (Self::Text, StaticType::Text)
            | (Self::Bytes, StaticType::Bytes)
            | (Self::Time, StaticType::Time)
            | (Self::Span, StaticType::Span)
            | (Self::List, StaticType::List(_))
            | (Self::Map, StaticType::Map(..))
            | (Self::Optional, StaticType::Optional(_))
            | (Self::Quantity, StaticType::Quantity)
            | (Self::Url, StaticType::Url)
            | (Self::Ip, StaticType::Ip)
            | (Self::Net, StaticType::Net)
            | (Self::Semver, StaticType::Semver)
            | (Self::Format, StaticType::Format) => true,
            (Self::Texts, StaticType::List(of)) => of.fits(&StaticType::Text),
            _ => false,
        }
    }
}

impl Gives {
    pub(in super::super) fn kind(
        self,
        target: Option<&StaticType>,
        args: &[StaticType],
    ) -> StaticType {
        match self {
            Self::Dyn => StaticType::Dyn,
            Self::Bool => StaticType::Bool,
            Self::Int => StaticType::Int,
            Self::Uint => StaticType::Uint,
            Self::Double => StaticType::Double,
            Self::Text => StaticType::Text,
            Self::Bytes => StaticType::Bytes,
            Self::Time => StaticType::Time,
            Self::Span => StaticType::Span,
            Self::Texts => StaticType::list(StaticType::Text),
            Self::Query => StaticType::Map(
                StaticType::Text.into(),
                StaticType::list(StaticType::Text).into(),
            ),
            Self::Quantity => StaticType::Quantity,
            Self::Url => StaticType::Url,
            Self::Ip => StaticType::Ip,
            Self::Net => StaticType::Net,
            Self::Type => StaticType::Type,
            Self::Semver => StaticType::Semver,
            Self::Format => StaticType::Format,
            Self::OptionalFormat => StaticType::optional(StaticType::Format),
            Self::OptionalTexts => StaticType::optional(StaticType::list(StaticType::Text)),
            Self::Inner => match target {
                Some(StaticType::List(of) | StaticType::Optional(of)) => (**of).clone(),
                _ => StaticType::Dyn,
            },
            Self::Target => target.cloned().unwrap_or(StaticType::Dyn),
            Self::OptionalOf => {
                StaticType::optional(args.first().cloned().unwrap_or(StaticType::Dyn))
            }
            Self::Optional => StaticType::optional(StaticType::Dyn),
        }
    }
}
