//! Access to fields, map entries and the content of optionals.

use std::sync::Arc;

use super::{
    meter::Fault,
    value::{List, Val},
};

/// An optional of the value found.
pub(super) fn may(found: Option<Val<'_>>) -> Val<'_> {
    Val::Optional(found.map(Arc::new))
}

pub(super) fn as_optional<'v, 'a>(value: &'v Val<'a>) -> Result<Option<&'v Val<'a>>, Fault> {
    match value {
        Val::Optional(inner) => Ok(inner.as_deref()),
        other => Fault::error(format!("optional expected and {} found", other.type_name())),
    }
}

/// The field of an object, or of the content of an optional.
pub(super) fn lookup_field<'a>(of: &Val<'a>, name: &str) -> Result<Option<Val<'a>>, Fault> {
    match of {
        Val::Map(fields) => match fields.misfit(name) {
            Some(why) => Fault::error(why),
            None => Ok(fields.select(name)),
        },
        Val::Optional(None) => Ok(None),
        Val::Optional(Some(inner)) => lookup_field(inner, name),
        other => Fault::error(format!("a {} has no field '{name}'", other.type_name())),
    }
}

pub(super) fn lookup_key<'a>(of: &Val<'a>, key: &Val<'a>) -> Result<Option<Val<'a>>, Fault> {
    match of {
        Val::Map(fields) => Ok(fields.get(key)),
        Val::List(list) => Ok(list_index(key).and_then(|index| list.get(index))),
        Val::Optional(None) => Ok(None),
        Val::Optional(Some(inner)) => lookup_key(inner, key),
        other => Fault::error(format!("a {} has no entries", other.type_name())),
    }
}

fn list_index(key: &Val<'_>) -> Option<usize> {
    match key {
        Val::Int(index) => usize::try_from(*index).ok(),
        Val::Uint(index) => usize::try_from(*index).ok(),
        Val::Double(index) if index.fract() == 0.0 && *index >= 0.0 => Some(*index as usize),
        _ => None,
    }
}

/// Whether a value is the zero value, for `optional.ofNonZeroValue`.
pub(super) fn is_zero(value: &Val<'_>) -> bool {
    match value {
        Val::Null => true,
        Val::Bool(value) => !value,
        Val::Int(value) => *value == 0,
        Val::Uint(value) => *value == 0,
        Val::Double(value) => *value == 0.0,
        Val::Text(text) => text.is_empty(),
        Val::Bytes(bytes) => bytes.is_empty(),
        Val::List(List::Of(items, _)) => items.is_empty(),
        Val::List(List::Made(items)) => items.is_empty(),
        Val::Map(fields) => fields.len() == 0,
        Val::Optional(inner) => inner.is_none(),
        Val::Span(span) => span.is_zero(),
        _ => false,
    }
}
