//! Decodes messages to JSON objects, field by field.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Number, Value};

use super::{
    Malformed,
    descriptor::{Cardinality, Descriptors, FieldType, MessageField, MessageId},
    reader::{FieldPayload, FieldReader},
    special,
};

/// Nesting of messages, at most. Schemas of custom resources are the deepest in practice; the JSON
/// form of the same object may nest 128 deep.
pub(super) const MAX_DEPTH: usize = 128;

/// Decodes messages at one depth of nesting.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decoder<'d> {
    pub(super) descriptors: &'d Descriptors,
    pub(super) depth: usize,
}

impl Decoder<'_> {
    /// Decodes a message into `object`. A message may come in pieces, so `object` may hold the
    /// fields of an earlier one.
    pub(super) fn message(
        self,
        id: MessageId,
        bytes: &[u8],
        object: &mut Map<String, Value>,
    ) -> Result<(), Malformed> {
        let inner = self.deeper()?;
        let mut reader = FieldReader::new(bytes);
        while let Some((number, payload)) = reader.next()? {
            if let Some(field) = self.descriptors.field(id, number) {
                inner.field(field, payload, object)?;
            }
        }
        Ok(())
    }

    /// The decoder for the next level of nesting.
    pub(super) fn deeper(self) -> Result<Self, Malformed> {
        if self.depth >= MAX_DEPTH {
            return Err(Malformed::TooDeep);
        }
        Ok(Self {
            depth: self.depth + 1,
            ..self
        })
    }

    fn field(
        self,
        field: &MessageField,
        payload: FieldPayload<'_>,
        object: &mut Map<String, Value>,
    ) -> Result<(), Malformed> {
        match (field.shape, field.ty) {
            (Cardinality::Inline, FieldType::Message(id)) => {
                self.message(id, payload.bytes(field.number)?, object)
            }
            (Cardinality::One, FieldType::Message(id)) => self.nested(field, id, payload, object),
            (Cardinality::One | Cardinality::Inline, _) => self.single(field, payload, object),
            (Cardinality::List, _) => self.element(field, payload, object),
            (Cardinality::Map, _) => self.entry(field, payload, object),
        }
    }

    fn nested(
        self,
        field: &MessageField,
        id: MessageId,
        payload: FieldPayload<'_>,
        object: &mut Map<String, Value>,
    ) -> Result<(), Malformed> {
        let mut inner = match object.remove(&*field.name) {
            Some(Value::Object(earlier)) => earlier,
            _ => Map::new(),
        };
        self.message(id, payload.bytes(field.number)?, &mut inner)?;
        if field.keep || !inner.is_empty() {
            object.insert(field.name.as_ref().into(), Value::Object(inner));
        }
        Ok(())
    }

    fn single(
        self,
        field: &MessageField,
        payload: FieldPayload<'_>,
        object: &mut Map<String, Value>,
    ) -> Result<(), Malformed> {
        let value = self.value(field, payload)?;
        // A null is a zero time or an empty extension: JSON clients leave those out.
        if value.is_null() || (!field.keep && is_zero(&value)) {
            object.remove(&*field.name);
        } else {
            object.insert(field.name.as_ref().into(), value);
        }
        Ok(())
    }

    fn element(
        self,
        field: &MessageField,
        payload: FieldPayload<'_>,
        object: &mut Map<String, Value>,
    ) -> Result<(), Malformed> {
        let Value::Array(list) = slot(object, &field.name, Value::Array(Vec::new())) else {
            return Ok(());
        };
        // Numbers may be packed into one field or come one by one.
        let number = matches!(
            field.ty,
            FieldType::Bool | FieldType::Int32 | FieldType::Int64 | FieldType::Double
        );
        let (FieldPayload::Bytes(packed), true) = (payload, number) else {
            list.push(self.value(field, payload)?);
            return Ok(());
        };
        let mut packed = FieldReader::new(packed);
        while !packed.is_empty() {
            let payload = match field.ty {
                FieldType::Double => FieldPayload::Fixed64(packed.fixed64()?),
                _ => FieldPayload::Varint(packed.varint()?),
            };
            list.push(self.value(field, payload)?);
        }
        Ok(())
    }

    fn entry(
        self,
        field: &MessageField,
        payload: FieldPayload<'_>,
        object: &mut Map<String, Value>,
    ) -> Result<(), Malformed> {
        let (mut key, mut value) = ("", None);
        let mut reader = FieldReader::new(payload.bytes(field.number)?);
        while let Some((number, payload)) = reader.next()? {
            match number {
                1 => key = payload.text(number, &field.name)?,
                2 => value = Some(payload),
                _ => {}
            }
        }
        let value = self.value(field, value.unwrap_or(absent(field.ty)))?;
        if let Value::Object(map) = slot(object, &field.name, Value::Object(Map::new())) {
            map.insert(key.into(), value);
        }
        Ok(())
    }

    fn value(self, field: &MessageField, payload: FieldPayload<'_>) -> Result<Value, Malformed> {
        let number = field.number;
        Ok(match field.ty {
            FieldType::String => payload.text(number, &field.name)?.into(),
            FieldType::Bool => (payload.varint(number)? != 0).into(),
            FieldType::Int32 => (payload.varint(number)? as i32).into(),
            FieldType::Int64 => (payload.varint(number)? as i64).into(),
            FieldType::Double => double(payload.fixed64(number)?)?,
            FieldType::Bytes => STANDARD.encode(payload.bytes(number)?).into(),
            FieldType::Message(id) => {
                let mut object = Map::new();
                self.message(id, payload.bytes(number)?, &mut object)?;
                Value::Object(object)
            }
            other => special::value(self, other, payload.bytes(number)?)?,
        })
    }
}

fn slot<'m>(object: &'m mut Map<String, Value>, name: &str, empty: Value) -> &'m mut Value {
    object.entry(name).or_insert(empty)
}

/// The value of a map entry without one.
fn absent(ty: FieldType) -> FieldPayload<'static> {
    match ty {
        FieldType::Bool | FieldType::Int32 | FieldType::Int64 => FieldPayload::Varint(0),
        FieldType::Double => FieldPayload::Fixed64(0),
        _ => FieldPayload::Bytes(&[]),
    }
}

/// A whole number is written without a fraction, as Go's JSON does.
fn double(bits: u64) -> Result<Value, Malformed> {
    const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;
    let number = f64::from_bits(bits);
    if number.fract() == 0.0 && number.abs() < MAX_EXACT_INTEGER {
        return Ok((number as i64).into());
    }
    Number::from_f64(number)
        .map(Value::Number)
        .ok_or(Malformed::OutOfRange("a floating point number"))
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Bool(set) => !set,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Null | Value::Object(_) => false,
    }
}
