//! What one writer was promised, object by object.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use serde_json::Value;

use crate::objects::{self, Resource};

/// The state of an object as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ObservedObject {
    pub(super) revision: u64,
    pub(super) content: Content,
}

/// What was written to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) number: u64,
    pub(super) padding: usize,
}

impl ObservedObject {
    pub(super) fn of(resource: Resource, object: &Value) -> Result<Self> {
        let padding = match resource {
            Resource::ConfigMaps => &object["data"]["padding"],
            Resource::Widgets => &object["spec"]["padding"],
        };
        let (Some(number), Some(padding)) = (resource.number(object), padding.as_str()) else {
            bail!("an object without its content: {object}");
        };
        Ok(Self {
            revision: objects::revision(object)?,
            content: Content {
                number,
                padding: padding.len(),
            },
        })
    }
}

/// A write whose answer never came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnansweredWrite {
    /// The content if it happened; none after a delete.
    pub(super) leaves: Option<Content>,
    /// Its revision is higher than this, if it happened.
    pub(super) floor: u64,
}

/// What is known of an object.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LedgerRow {
    /// As it was acknowledged.
    pub(super) acknowledged: Option<ObservedObject>,
    pub(super) unknown: Option<UnansweredWrite>,
}

impl LedgerRow {
    /// Compares with the state after a crash, which replaces the promise. Returns true if an
    /// unanswered write turns out to have happened.
    pub(super) fn verify(&mut self, found: Option<ObservedObject>) -> Result<bool> {
        let unknown = self.unknown.take();
        if found == self.acknowledged {
            return Ok(false);
        }
        let happened = unknown.is_some_and(|unknown| match (unknown.leaves, found) {
            (None, None) => true,
            (Some(content), Some(found)) => {
                found.content == content && found.revision > unknown.floor
            }
            _ => false,
        });
        if !happened {
            bail!(
                "acknowledged {:?}, without an answer {unknown:?}, but found {found:?}",
                self.acknowledged
            );
        }
        self.acknowledged = found;
        Ok(true)
    }
}

/// All objects of one writer.
pub(super) type Ledger = BTreeMap<(Resource, String), LedgerRow>;

#[cfg(test)]
mod tests {
    use super::*;

    fn found(revision: u64, number: u64) -> ObservedObject {
        let padding = 0;
        ObservedObject {
            revision,
            content: Content { number, padding },
        }
    }

    #[test]
    fn only_what_was_promised_or_asked_for_may_be_found() {
        let old = found(5, 1);
        let put = Some(UnansweredWrite {
            leaves: Some(found(0, 2).content),
            floor: 7,
        });
        let delete = Some(UnansweredWrite {
            leaves: None,
            floor: 7,
        });
        for (unknown, after, expected) in [
            (None, Some(old), Some(false)),
            (None, None, None),
            (None, Some(found(6, 1)), None),
            (put, Some(old), Some(false)),
            (put, Some(found(8, 2)), Some(true)),
            (put, Some(found(7, 2)), None),
            (put, Some(found(8, 3)), None),
            (put, None, None),
            (delete, None, Some(true)),
            (delete, Some(old), Some(false)),
        ] {
            let mut entry = LedgerRow {
                acknowledged: Some(old),
                unknown,
            };
            assert_eq!(entry.verify(after).ok(), expected, "{unknown:?} {after:?}");
        }
    }
}
