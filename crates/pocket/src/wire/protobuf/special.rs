//! Messages whose JSON is not an object with the same fields.

use jiff::Timestamp;
use serde_json::Value;

use super::{
    MAGIC, Malformed,
    descriptor::FieldType,
    message::Decoder,
    object,
    reader::{FieldPayload, FieldReader},
    union,
};
use crate::environment::rfc3339;

/// The JSON of a special message; null if it is empty.
pub(super) fn value(decoder: Decoder<'_>, ty: FieldType, bytes: &[u8]) -> Result<Value, Malformed> {
    match ty {
        FieldType::Time => time(bytes, rfc3339),
        FieldType::MicroTime => time(bytes, |at| {
            at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
        }),
        FieldType::Quantity => quantity(bytes),
        FieldType::IntOrString => int_or_string(bytes),
        FieldType::StringList => string_list(bytes),
        FieldType::RawObject => raw_object(decoder, bytes),
        FieldType::RawJson => raw_json(bytes),
        FieldType::SchemaOrList => union::schema_or_list(decoder, bytes),
        FieldType::SchemaOrBool => union::schema_or_bool(decoder, bytes),
        FieldType::SchemaOrStrings => union::schema_or_strings(decoder, bytes),
        _ => Ok(Value::Null),
    }
}

/// `text` as JSON; `what` is its name in errors.
pub(super) fn json(text: &[u8], what: &'static str) -> Result<Value, Malformed> {
    serde_json::from_slice(text).map_err(|_| Malformed::NotJson(what))
}

/// An empty message is the zero time, which has no JSON form.
fn time(bytes: &[u8], show: impl Fn(Timestamp) -> String) -> Result<Value, Malformed> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0, 0);
    each(bytes, |number, payload| {
        match number {
            1 => seconds = payload.varint(number)? as i64,
            2 => nanos = payload.varint(number)? as i32,
            _ => {}
        }
        Ok(())
    })?;
    let at = Timestamp::new(seconds, nanos).map_err(|_| Malformed::OutOfRange("a time"))?;
    Ok(show(at).into())
}

fn quantity(bytes: &[u8]) -> Result<Value, Malformed> {
    let mut text = "";
    each(bytes, |number, payload| {
        if number == 1 {
            text = payload.text(number, "a quantity")?;
        }
        Ok(())
    })?;
    Ok(if text.is_empty() { "0" } else { text }.into())
}

fn int_or_string(bytes: &[u8]) -> Result<Value, Malformed> {
    let (mut is_text, mut int, mut text) = (0, 0, "");
    each(bytes, |number, payload| {
        match number {
            1 => is_text = payload.varint(number)?,
            2 => int = payload.varint(number)? as i32,
            3 => text = payload.text(number, "a number or string")?,
            _ => {}
        }
        Ok(())
    })?;
    match is_text {
        0 => Ok(int.into()),
        1 => Ok(text.into()),
        _ => Err(Malformed::OutOfRange("the type of a number or string")),
    }
}

fn string_list(bytes: &[u8]) -> Result<Value, Malformed> {
    let mut list = Vec::new();
    each(bytes, |number, payload| {
        if number == 1 {
            list.push(payload.text(number, "a list of strings")?.into());
        }
        Ok(())
    })?;
    Ok(Value::Array(list))
}

/// A raw extension: JSON, or an envelope of its own.
fn raw_object(decoder: Decoder<'_>, bytes: &[u8]) -> Result<Value, Malformed> {
    let raw = raw(bytes)?;
    if raw.starts_with(MAGIC) {
        return object(raw, None, decoder.deeper()?.depth);
    }
    text_or_null(raw)
}

fn raw_json(bytes: &[u8]) -> Result<Value, Malformed> {
    text_or_null(raw(bytes)?)
}

fn text_or_null(raw: &[u8]) -> Result<Value, Malformed> {
    if raw.is_empty() {
        return Ok(Value::Null);
    }
    json(raw, "an embedded value")
}

fn raw(bytes: &[u8]) -> Result<&[u8], Malformed> {
    let mut raw: &[u8] = &[];
    each(bytes, |number, payload| {
        if number == 1 {
            raw = payload.bytes(number)?;
        }
        Ok(())
    })?;
    Ok(raw)
}

/// Calls `see` with every field of a message.
pub(super) fn each<'a>(
    bytes: &'a [u8],
    mut see: impl FnMut(u32, FieldPayload<'a>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let mut reader = FieldReader::new(bytes);
    while let Some((number, payload)) = reader.next()? {
        see(number, payload)?;
    }
    Ok(())
}
