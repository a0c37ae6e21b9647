//! Builds a value from any self-describing format and records duplicate fields.

use std::{cell::RefCell, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::Decoded;
use crate::schema::FieldPath;

/// Duplicates that are reported, at most; more would say nothing new.
pub const MAX_DUPLICATES: usize = 100;

/// The findings of a decoder.
#[derive(Default)]
pub(super) struct DecodeFindings {
    duplicates: RefCell<Vec<String>>,
    /// YAML's `1.0` is written `1` when it is converted to JSON, and is an integer from then on.
    whole_floats_are_integers: bool,
}

impl DecodeFindings {
    pub(super) fn yaml() -> Self {
        Self {
            whole_floats_are_integers: true,
            ..Self::default()
        }
    }

    pub(super) fn with(self, value: Value) -> Decoded {
        Decoded {
            value,
            duplicates: self.duplicates.into_inner(),
        }
    }

    fn duplicate(&self, place: FieldPath<'_>) {
        let mut found = self.duplicates.borrow_mut();
        if found.len() == MAX_DUPLICATES {
            return;
        }
        let path = place.to_string();
        if !found.contains(&path) {
            found.push(path);
        }
    }
}

/// Decodes the value at one path.
#[derive(Clone, Copy)]
pub(super) struct ValueSeed<'a> {
    findings: &'a DecodeFindings,
    place: &'a FieldPath<'a>,
}

impl<'a> ValueSeed<'a> {
    pub(super) fn root(findings: &'a DecodeFindings) -> Self {
        Self {
            findings,
            place: &FieldPath::Root,
        }
    }
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;
        if self.findings.whole_floats_are_integers
            && value.fract() == 0.0
            && value.abs() < MAX_EXACT_INTEGER
        {
            return Ok(Value::from(value as i64));
        }
        let number = Number::from_f64(value);
        number
            .map(Value::Number)
            .ok_or_else(|| E::custom("numbers must be finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        self.deserialize(reader)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        self.deserialize(reader)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let place = FieldPath::Index(self.place, items.len());
            let node = ValueSeed {
                place: &place,
                ..self
            };
            match list.next_element_seed(node)? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let place = FieldPath::Field(self.place, &name);
            let value = fields.next_value_seed(ValueSeed {
                place: &place,
                ..self
            })?;
            if map.contains_key(&name) {
                self.findings.duplicate(place);
            }
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}
