//! The values of expressions. Objects stay JSON and are read lazily through their schema.

use std::{collections::BTreeMap, net::IpAddr, ops::Deref, sync::Arc};

use base64::Engine as _;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

use super::{
    meter::{Fault, Meter},
    misfit::misfit,
    name,
    net::Net,
    quantity::CelQuantity,
    semver::Semver,
    url::Url,
};
use crate::{
    crd::validate,
    schema::{Schema, Type},
};

/// A string, borrowed from the object or made by the expression.
#[derive(Debug, Clone)]
pub(super) enum Text<'a> {
    Of(&'a str),
    Made(Arc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Of(text) => text,
            Self::Made(text) => text,
        }
    }
}

/// A list, with the schema of its items where it comes from the object.
#[derive(Debug, Clone)]
pub(super) enum List<'a> {
    Of(&'a [Value], Option<Schema<'a>>),
    Made(Arc<Vec<Val<'a>>>),
}

impl<'a> List<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Of(items, _) => items.len(),
            Self::Made(items) => items.len(),
        }
    }

    pub(super) fn get(&self, index: usize) -> Option<Val<'a>> {
        match self {
            Self::Of(items, schema) => items.get(index).map(|item| Val::read(item, *schema)),
            Self::Made(items) => items.get(index).cloned(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Val<'a>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}

/// A key of a map that an expression made.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MapKey {
    Bool(bool),
    Int(i64),
    Text(Arc<str>),
}

impl MapKey {
    pub(super) fn value<'a>(&self) -> Val<'a> {
        match self {
            Self::Bool(value) => Val::Bool(*value),
            Self::Int(value) => Val::Int(*value),
            Self::Text(text) => Val::Text(Text::Made(text.clone())),
        }
    }
}

/// A map, or an object with the schema it is read through.
#[derive(Debug, Clone)]
pub(super) enum MapValue<'a> {
    Of(&'a Map<String, Value>, Option<Schema<'a>>),
    Made(Arc<BTreeMap<MapKey, Val<'a>>>),
}

impl<'a> MapValue<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Of(fields, _) => fields.len(),
            Self::Made(fields) => fields.len(),
        }
    }

    /// Why a declared field cannot be read.
    pub(super) fn misfit(&self, field: &str) -> Option<String> {
        let Self::Of(fields, Some(schema)) = self else {
            return None;
        };
        let name = name::property(field);
        misfit(fields.get(&*name)?, schema.property(&name)?)
    }

    /// `a.field`: names of declared properties may be escaped, keys of maps never are.
    pub(super) fn select(&self, field: &str) -> Option<Val<'a>> {
        match self {
            Self::Of(fields, Some(schema)) if schema.node().additional.is_none() => {
                let name = name::property(field);
                let value = fields.get(&*name)?;
                let property = schema.property(&name);
                // Null counts as absent where it is not allowed.
                if value.is_null() && property.is_some_and(|p| !p.node().nullable) {
                    return None;
                }
                Some(Val::read(value, property))
            }
            _ => self.get(&Val::Text(Text::Made(field.into()))),
        }
    }

    /// `a[key]`.
    pub(super) fn get(&self, key: &Val<'a>) -> Option<Val<'a>> {
        match self {
            Self::Of(fields, schema) => {
                let Val::Text(text) = key else { return None };
                let value = fields.get(&**text)?;
                Some(Val::read(value, schema.and_then(|s| s.field(text))))
            }
            Self::Made(fields) => fields.get(&key.key()?).cloned(),
        }
    }

    pub(super) fn keys(&self) -> Vec<Val<'a>> {
        match self {
            Self::Of(fields, _) => fields.keys().map(|k| Val::Text(Text::Of(k))).collect(),
            Self::Made(fields) => fields.keys().map(MapKey::value).collect(),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Text<'a>),
    Bytes(Arc<[u8]>),
    /// Bytes of the object, not decoded yet: decoding is charged.
    Encoded(&'a str),
    List(List<'a>),
    Map(MapValue<'a>),
    Optional(Option<Arc<Val<'a>>>),
    Time(Timestamp),
    Span(SignedDuration),
    Quantity(CelQuantity),
    Url(Arc<Url>),
    Ip(IpAddr),
    Net(Net),
    Semver(Arc<Semver>),
    Type(&'static str),
    /// A named format, for `format.uuid().validate(x)`.
    Format(&'static str),
}

impl<'a> Val<'a> {
    /// Reads JSON as its schema says; a value that does not fit its schema is read as it is.
    pub(super) fn read(value: &'a Value, schema: Option<Schema<'a>>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => Self::number(number, schema),
            Value::String(text) => Self::string(text, schema),
            Value::Array(items) => Self::List(List::Of(items, schema.and_then(Schema::items))),
            Value::Object(fields) => Self::Map(MapValue::Of(fields, schema)),
        }
    }

    fn number(number: &serde_json::Number, schema: Option<Schema<'_>>) -> Self {
        let double = schema.is_some_and(|schema| schema.node().ty == Type::Number);
        match (number.as_i64(), number.as_f64()) {
            (Some(int), _) if !double => Self::Int(int),
            (_, Some(float)) if !double && float.fract() == 0.0 && float.abs() < 9e15 => {
                Self::Int(float as i64)
            }
            (_, Some(float)) => Self::Double(float),
            _ => Self::Null,
        }
    }

    fn string(text: &'a str, schema: Option<Schema<'a>>) -> Self {
        let format = schema.and_then(|schema| schema.node().format.as_deref());
        let read = match format {
            Some("date-time" | "datetime") => validate::date_time(text).map(Self::Time),
            Some("date") => date(text).map(Self::Time),
            Some("duration") => validate::go_duration(text).map(Self::Span),
            Some("byte") => Some(Self::Encoded(text)),
            _ => None,
        };
        read.unwrap_or(Self::Text(Text::Of(text)))
    }

    /// The decoded value.
    pub(super) fn decoded(self, meter: &Meter) -> Result<Self, Fault> {
        let Self::Encoded(text) = self else {
            return Ok(self);
        };
        meter.spend_text(text.len())?;
        let bytes = base64::engine::general_purpose::STANDARD.decode(text);
        Ok(bytes.map_or(Self::Text(Text::Of(text)), |bytes| {
            Self::Bytes(bytes.into())
        }))
    }

    pub(super) fn text(text: impl Into<Arc<str>>) -> Self {
        Self::Text(Text::Made(text.into()))
    }

    pub(super) fn list(items: Vec<Val<'a>>) -> Self {
        Self::List(List::Made(items.into()))
    }

    pub(super) fn some(self) -> Self {
        Self::Optional(Some(self.into()))
    }

    pub(super) fn key(&self) -> Option<MapKey> {
        Some(match self {
            Self::Bool(value) => MapKey::Bool(*value),
            Self::Int(value) => MapKey::Int(*value),
            Self::Uint(value) => MapKey::Int(i64::try_from(*value).ok()?),
            Self::Double(value) if value.fract() == 0.0 => MapKey::Int(*value as i64),
            Self::Text(Text::Of(text)) => MapKey::Text((*text).into()),
            Self::Text(Text::Made(text)) => MapKey::Text(text.clone()),
            _ => return None,
        })
    }

    /// The name of the value's type in the language.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::Bytes(_) | Self::Encoded(_) => "bytes",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Time(_) => "google.protobuf.Timestamp",
            Self::Span(_) => "google.protobuf.Duration",
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Url(_) => "kubernetes.URL",
            Self::Ip(_) => "net.IP",
            Self::Net(_) => "net.CIDR",
            Self::Semver(_) => "kubernetes.Semver",
            Self::Type(_) => "type",
            Self::Format(_) => "kubernetes.NamedFormat",
        }
    }
}

fn date(text: &str) -> Option<Timestamp> {
    let date: jiff::civil::Date = text.parse().ok()?;
    let midnight = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(midnight.timestamp())
}
