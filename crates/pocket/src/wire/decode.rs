//! Decodes request bodies.
//!
//! A body becomes a JSON value, and duplicate fields, which a JSON value cannot hold, are recorded
//! beside it. Nesting is bounded because values are walked and dropped recursively: JSON at
//! serde_json's limit of [`MAX_DEPTH`] levels, YAML at [`MAX_YAML_DEPTH`] because its parser takes
//! more stack per level; its budget also bounds the expansion of aliases.

mod visit;

use serde::de::DeserializeSeed;
use serde_json::Value;
use serde_saphyr::options::DuplicateKeyPolicy;

use self::visit::{DecodeFindings, ValueSeed};
use crate::{
    schema::whole_numbers,
    status::{ApiError, Result, unreadable_json},
};

pub use self::visit::MAX_DUPLICATES;
pub use crate::patch::MAX_DEPTH;

#[cfg(test)]
mod tests;

/// Nesting of lists and maps in a YAML body, at most.
pub const MAX_YAML_DEPTH: usize = 64;

/// Nodes of a YAML body with expanded aliases, at most.
const MAX_YAML_NODES: usize = 500_000;

/// Nodes that aliases may repeat for each byte of the body: a small body must not cost as much time as a large one.
const REPEATED_PER_BYTE: usize = 10;

/// Nodes that the aliases of the smallest body may repeat.
const MIN_REPEATED: usize = 5_000;

/// In YAML a number without a fraction is an integer, in any notation. Beyond this bound a float
/// has no fraction anyway, and integers end.
const MAX_WHOLE_FLOAT: f64 = 9.0e18;

/// A decoded body.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The value; of a duplicate field, the last.
    pub value: Value,
    /// Paths of duplicate fields, such as `spec.replicas`; at most [`MAX_DUPLICATES`].
    pub duplicates: Vec<String>,
}

/// Decodes a JSON body.
pub fn json(body: &[u8]) -> Result<Decoded> {
    read_json(body, DecodeFindings::default())
}

fn read_json(body: &[u8], findings: DecodeFindings) -> Result<Decoded> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let value = ValueSeed::root(&findings)
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value))
        .map_err(|e| refused("json", &unreadable_json(body, &e)))?;
    Ok(findings.with(value))
}

/// Decodes a YAML body of one document. JSON is YAML too, and is parsed as JSON where it looks like
/// it.
pub fn yaml(body: &[u8]) -> Result<Decoded> {
    let text = std::str::from_utf8(body).map_err(|e| refused("yaml", &e))?;
    if text.trim_start().starts_with('{')
        && let Ok(mut decoded) = read_json(body, DecodeFindings::yaml())
    {
        whole_numbers(&mut decoded.value, MAX_WHOLE_FLOAT);
        return Ok(decoded);
    }
    let findings = DecodeFindings::yaml();
    let value = serde_saphyr::with_deserializer_from_str_with_options(
        text,
        options(body.len()),
        |reader| ValueSeed::root(&findings).deserialize(reader),
    )
    .map_err(|e| refused("yaml", &e))?;
    let mut decoded = findings.with(value);
    whole_numbers(&mut decoded.value, MAX_WHOLE_FLOAT);
    Ok(decoded)
}

/// Nodes that aliases of a body of this length may repeat.
fn max_repeated(length: usize) -> usize {
    length
        .saturating_mul(REPEATED_PER_BYTE)
        .clamp(MIN_REPEATED, MAX_YAML_NODES)
}

/// Options for a body of this length. Booleans and octal numbers are those of YAML 1.1, which is what Kubernetes
/// reads.
fn options(length: usize) -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_YAML_DEPTH,
            flow_nesting_limit: MAX_YAML_DEPTH,
            max_nodes: MAX_YAML_NODES,
            max_documents: 1,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: max_repeated(length),
        },
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        legacy_octal_numbers: true,
        with_snippet: false,
    }
}

fn refused(language: &str, why: &dyn std::fmt::Display) -> ApiError {
    let why = why.to_string();
    let why = if why.starts_with("recursion limit exceeded") {
        format!("lists and maps are nested deeper than {MAX_DEPTH} levels")
    } else {
        why
    };
    ApiError::bad_request(format!(
        "couldn't get version/kind; {language} parse error: {why}"
    ))
}
