//! One record: a line of the audit file.

use std::fmt::Write as _;

use aws_lc_rs::digest::{Context, SHA256};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// An action of a field manager on an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditedAction {
    /// When it was recorded.
    pub time: Timestamp,
    /// The field manager that acted.
    pub actor: String,
    /// What was done, such as `create`.
    pub action: String,
    /// The object: API version, kind and key.
    pub object: String,
    /// The result: `done` or an error.
    pub outcome: String,
    /// Why, if it carries out the decision of a user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// An action and its index in the chain.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct AuditRecord<A> {
    /// The index, counted from one.
    pub(super) index: u64,
    #[serde(flatten)]
    pub(super) action: A,
}

/// The end of a chain: the number of records, and the hash of the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainHead {
    /// The number of records.
    pub index: u64,
    /// The hash of the last record in hexadecimal; zeros if there is none.
    pub hash: String,
}

impl Default for ChainHead {
    fn default() -> Self {
        Self {
            index: 0,
            hash: "0".repeat(HASH_LENGTH),
        }
    }
}

/// The length of a hash in hexadecimal.
pub(super) const HASH_LENGTH: usize = 64;
const HASH_PREFIX: &str = ",\"hash\":\"";
const HASH_SUFFIX: &str = "\"}";

impl ChainHead {
    /// The next line of the chain, without line break, and the head after it.
    pub(super) fn append(&self, action: &AuditedAction) -> (String, Self) {
        let index = self.index + 1;
        // Serializing strings and numbers does not fail.
        let mut line = serde_json::to_string(&AuditRecord { index, action }).unwrap_or_default();
        line.pop();
        let hash = self.hash_next(&line);
        line.push_str(HASH_PREFIX);
        line.push_str(&hash);
        line.push_str(HASH_SUFFIX);
        (line, Self { index, hash })
    }

    /// The hash of the next record with this text.
    pub(super) fn hash_next(&self, text: &str) -> String {
        let mut context = Context::new(&SHA256);
        context.update(self.hash.as_bytes());
        context.update(text.as_bytes());
        let mut hash = String::with_capacity(HASH_LENGTH);
        for byte in context.finish().as_ref() {
            let _ = write!(hash, "{byte:02x}");
        }
        hash
    }
}

/// The head of the chain after this line, as stated by the line itself.
pub(super) fn head_after(line: &str) -> Option<ChainHead> {
    let (_, hash) = split(line)?;
    let record: AuditRecord<AuditedAction> = serde_json::from_str(line).ok()?;
    Some(ChainHead {
        index: record.index,
        hash: hash.to_owned(),
    })
}

/// The part of a line that is hashed, and the hash that it contains.
pub(super) fn split(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_suffix(HASH_SUFFIX)?;
    let (rest, hash) = rest.split_at_checked(rest.len().checked_sub(HASH_LENGTH)?)?;
    Some((rest.strip_suffix(HASH_PREFIX)?, hash))
}
