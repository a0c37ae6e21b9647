//! Bodies of requests, read with a limit.

use axum::body::Body;
use bytes::Bytes;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::{collections::HashSet, fmt};

/// The deepest nesting of a JSON body. serde_json itself stops at 128.
const MAX_DEPTH: usize = 64;

/// Why a body was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// It is longer than the limit.
    #[error("the body is longer than {0} bytes")]
    TooLong(usize),
    /// It ended early, or the connection failed.
    #[error("the body could not be read")]
    Incomplete,
    /// It is not JSON, or JSON that two programs could read differently.
    #[error("the body is not acceptable JSON: {0}")]
    Json(String),
}

/// Reads a body of at most `limit` bytes.
pub async fn read_json(body: Body, limit: usize) -> Result<Option<Value>, BodyError> {
    let bytes = read(body, limit).await?;
    if bytes.is_empty() {
        return Ok(None);
    }
    reject_duplicate_keys(&bytes)?;
    let value = serde_json::from_slice(&bytes);
    value
        .map(Some)
        .map_err(|error| BodyError::Json(error.to_string()))
}

async fn read(body: Body, limit: usize) -> Result<Bytes, BodyError> {
    match axum::body::to_bytes(body, limit).await {
        Ok(bytes) => Ok(bytes),
        Err(error) => {
            let too_long = std::error::Error::source(&error)
                .is_some_and(|source| source.to_string().contains("length limit"));
            if too_long {
                return Err(BodyError::TooLong(limit));
            }
            Err(BodyError::Incomplete)
        }
    }
}

/// Refuses JSON that says a member twice, of which two programs may read different ones, and JSON that
/// is nested too deeply.
pub fn reject_duplicate_keys(text: &[u8]) -> Result<(), BodyError> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let refused = |error: serde_json::Error| BodyError::Json(error.to_string());
    Unambiguous(0).deserialize(&mut json).map_err(refused)?;
    json.end().map_err(refused)
}

#[derive(Clone, Copy)]
struct Unambiguous(usize);

impl<'de> DeserializeSeed<'de> for Unambiguous {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unambiguous {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let inner = self.deeper::<A::Error>()?;
        let mut names = HashSet::new();
        while let Some(name) = members.next_key::<String>()? {
            members.next_value_seed(inner)?;
            if !names.insert(name.clone()) {
                return Err(A::Error::custom(format!("it has two members {name:?}")));
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let inner = self.deeper::<A::Error>()?;
        while items.next_element_seed(inner)?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

impl Unambiguous {
    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.0 == MAX_DEPTH {
            return Err(E::custom(format!("it is nested deeper than {MAX_DEPTH}")));
        }
        Ok(Self(self.0 + 1))
    }
}
