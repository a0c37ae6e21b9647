//! The counts of a run.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use crate::{call::Call, compare::Difference, mask::MASKS};

/// The identity of a difference: kind, verb, field and rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Signature {
    pub kind: String,
    pub verb: String,
    pub field: String,
    pub rule: String,
}

/// Differences of one signature.
#[derive(Debug, Clone, Serialize)]
pub struct SignatureCount {
    /// The number of calls that showed it.
    pub count: usize,
    /// The seed and number of the first call.
    pub first: (u64, usize),
    pub call: Call,
    pub example: Difference,
}

/// The counts of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// Calls by kind, verb, code and reason of the reference's response.
    pub answers: BTreeMap<(String, String, u16, String), usize>,
    /// Differences that are not permitted.
    pub found: BTreeMap<Signature, SignatureCount>,
    /// The number of permitted differences, by entry.
    pub allowed: BTreeMap<usize, usize>,
    /// Watches compared, and events in them.
    pub watches: (usize, usize),
    /// Leaves compared and masked.
    pub leaves: (usize, usize),
}

impl Report {
    /// Counts a call and the reference's response.
    pub fn count(&mut self, call: &Call, code: u16, body: &Value) {
        let reason = match body["reason"].as_str() {
            Some(reason) if code >= 400 => reason,
            _ => "",
        };
        let key = (
            call.about.kind.clone(),
            call.about.verb.clone(),
            code,
            reason.to_owned(),
        );
        *self.answers.entry(key).or_default() += 1;
    }

    /// Records a difference.
    pub fn record(&mut self, call: &Call, first: (u64, usize), difference: Difference) {
        let signature = Signature {
            kind: call.about.kind.clone(),
            verb: call.about.verb.clone(),
            field: difference.field.clone(),
            rule: difference.rule.clone(),
        };
        let found = self
            .found
            .entry(signature)
            .or_insert_with(|| SignatureCount {
                count: 0,
                first,
                call: call.clone(),
                example: difference,
            });
        found.count += 1;
    }

    /// All calls, and those that the reference refused.
    pub fn totals(&self) -> (usize, usize) {
        let all = self.answers.values().sum();
        let refused = self
            .answers
            .iter()
            .filter(|((_, _, code, _), _)| *code >= 400);
        (all, refused.map(|(_, count)| count).sum())
    }

    /// Signatures, the most frequent first.
    pub fn ranked(&self) -> Vec<(&Signature, &SignatureCount)> {
        let mut all: Vec<_> = self.found.iter().collect();
        all.sort_by_key(|(_, found)| std::cmp::Reverse(found.count));
        all
    }

    /// The JSON form.
    pub fn json(&self) -> Value {
        let (all, refused) = self.totals();
        let answers = self.answers.iter().map(|((kind, verb, code, reason), count)| {
            json!({"kind": kind, "verb": verb, "code": code, "reason": reason, "count": count})
        });
        let found = self.ranked().into_iter().map(|(signature, found)| {
            json!({"kind": signature.kind, "verb": signature.verb, "field": signature.field, "rule": signature.rule, "found": found})
        });
        json!({
            "requests": all,
            "refused": refused,
            "answers": answers.collect::<Vec<_>>(),
            "differences": found.collect::<Vec<_>>(),
            "watches": {"compared": self.watches.0, "events": self.watches.1},
            "leaves": {"compared": self.leaves.0, "masked": self.leaves.1},
            "masks": MASKS,
        })
    }
}
