//! One line of the file.

use std::fmt::Write as _;

use aws_lc_rs::digest::{Context, SHA256};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deed {
    /// When.
    pub time: Timestamp,
    /// In whose name.
    pub actor: String,
    /// What.
    pub action: String,
    /// To which object.
    pub object: String,
    /// What came of it.
    pub outcome: String,
}

/// A deed and its place.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record<D> {
    /// Counted from one.
    pub(super) index: u64,
    #[serde(flatten)]
    pub(super) deed: D,
}

/// Where a chain ends: so many records, and the hash of the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// How many records there are.
    pub index: u64,
    /// The hash of the last, in hexadecimal; zeros if there is none.
    pub hash: String,
}

impl Default for Head {
    fn default() -> Self {
        Self {
            index: 0,
            hash: "0".repeat(HASH),
        }
    }
}

/// The length of a hash in hexadecimal.
pub(super) const HASH: usize = 64;
const BEFORE: &str = ",\"hash\":\"";
const AFTER: &str = "\"}";

impl Head {
    /// The line that follows, without its end, and where the chain ends then.
    pub(super) fn follow(&self, deed: &Deed) -> (String, Self) {
        let index = self.index + 1;
        // A record of strings and numbers has no way to fail.
        let mut line = serde_json::to_string(&Record { index, deed }).unwrap_or_default();
        line.pop();
        let hash = self.link(&line);
        line.push_str(BEFORE);
        line.push_str(&hash);
        line.push_str(AFTER);
        (line, Self { index, hash })
    }

    /// The hash of what follows.
    pub(super) fn link(&self, text: &str) -> String {
        let mut context = Context::new(&SHA256);
        context.update(self.hash.as_bytes());
        context.update(text.as_bytes());
        let mut hash = String::with_capacity(HASH);
        for byte in context.finish().as_ref() {
            let _ = write!(hash, "{byte:02x}");
        }
        hash
    }
}

/// Where the chain stands after this line, as far as the line says.
pub(super) fn head_after(line: &str) -> Option<Head> {
    let (_, hash) = split(line)?;
    let record: Record<Deed> = serde_json::from_str(line).ok()?;
    Some(Head {
        index: record.index,
        hash: hash.to_owned(),
    })
}

/// The part of a line that is hashed, and the hash that it claims.
pub(super) fn split(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_suffix(AFTER)?;
    let (rest, hash) = rest.split_at_checked(rest.len().checked_sub(HASH)?)?;
    Some((rest.strip_suffix(BEFORE)?, hash))
}
