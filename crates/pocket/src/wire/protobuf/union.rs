//! The fields of a custom resource's schema that hold a schema or something else.

use serde_json::{Map, Value};

use super::{Malformed, message::Decoder, reader::FieldPayload, special::each};

/// A schema for all elements, or a list with one for each.
pub(super) fn schema_or_list(decoder: Decoder<'_>, bytes: &[u8]) -> Result<Value, Malformed> {
    let (mut one, mut many) = (Value::Null, Vec::new());
    each(bytes, |number, payload| {
        match number {
            1 => one = schema(decoder, number, payload)?,
            2 => many.push(schema(decoder, number, payload)?),
            _ => {}
        }
        Ok(())
    })?;
    Ok(first_of(many, one))
}

/// A schema for additional properties, or whether they are allowed.
pub(super) fn schema_or_bool(decoder: Decoder<'_>, bytes: &[u8]) -> Result<Value, Malformed> {
    let (mut allows, mut one) = (false, None);
    each(bytes, |number, payload| {
        match number {
            1 => allows = payload.varint(number)? != 0,
            2 => one = Some(schema(decoder, number, payload)?),
            _ => {}
        }
        Ok(())
    })?;
    Ok(one.unwrap_or(Value::Bool(allows)))
}

/// A schema that must hold, or the names of required properties.
pub(super) fn schema_or_strings(decoder: Decoder<'_>, bytes: &[u8]) -> Result<Value, Malformed> {
    let (mut one, mut names) = (Value::Null, Vec::new());
    each(bytes, |number, payload| {
        match number {
            1 => one = schema(decoder, number, payload)?,
            2 => names.push(payload.text(number, "a list of properties")?.into()),
            _ => {}
        }
        Ok(())
    })?;
    Ok(first_of(names, one))
}

fn first_of(list: Vec<Value>, otherwise: Value) -> Value {
    if list.is_empty() {
        otherwise
    } else {
        Value::Array(list)
    }
}

fn schema(
    decoder: Decoder<'_>,
    number: u32,
    payload: FieldPayload<'_>,
) -> Result<Value, Malformed> {
    let mut object = Map::new();
    if let Some(id) = decoder.descriptors.schema() {
        decoder.message(id, payload.bytes(number)?, &mut object)?;
    }
    Ok(Value::Object(object))
}
