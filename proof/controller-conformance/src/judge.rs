//! Finds differences, and whether they are permitted.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use neap_api_conformance::{
    compare::{self, Difference},
    permitted::{self, PermittedDifference, allowing},
};
use serde_json::Value;

use crate::{
    normalize::title,
    play::{FAILURE, Recording},
};

const LIST: &str = include_str!("../allowed.toml");

/// A difference and its position.
#[derive(Debug)]
pub struct Finding {
    pub scenario: String,
    /// The step that it follows, starting at one.
    pub step: usize,
    pub kind: String,
    pub name: String,
    pub difference: Difference,
    /// The entry that permits it.
    pub allowed: Option<usize>,
}

/// The committed list of permitted differences.
pub fn entries() -> Result<Vec<PermittedDifference>> {
    permitted::read("allowed.toml", LIST)
}

/// All differences. One that an earlier step has shown is not reported again.
pub fn findings(
    theirs: &Recording,
    ours: &Recording,
    entries: &[PermittedDifference],
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (scenario, states) in theirs {
        let mut seen = BTreeSet::new();
        let nothing = Vec::new();
        let others = ours.get(scenario).unwrap_or(&nothing);
        for (step, state) in states.iter().enumerate() {
            let other = others.get(step).map_or(&[][..], Vec::as_slice);
            for (kind, name, difference) in between(state, other) {
                let known = (
                    kind.clone(),
                    difference.field.clone(),
                    difference.rule.clone(),
                );
                if seen.insert(known) {
                    findings.push(Finding {
                        scenario: scenario.clone(),
                        step: step + 1,
                        allowed: allowing(entries, &kind, &difference).filter(|_| kind != FAILURE),
                        kind,
                        name,
                        difference,
                    });
                }
            }
        }
    }
    findings
}

fn between(theirs: &[Value], ours: &[Value]) -> Vec<(String, String, Difference)> {
    let titled = |objects: &'_ [Value]| -> BTreeMap<(String, String), Vec<usize>> {
        let mut titled = BTreeMap::<_, Vec<usize>>::new();
        for (place, object) in objects.iter().enumerate() {
            titled.entry(title(object)).or_default().push(place);
        }
        titled
    };
    let (their_titles, our_titles) = (titled(theirs), titled(ours));
    let find = |all: &[Value], places: Option<&Vec<usize>>| -> Vec<Value> {
        let places = places.into_iter().flatten();
        places
            .filter_map(|&place| all.get(place).cloned())
            .collect()
    };
    let titles: BTreeSet<_> = their_titles.keys().chain(our_titles.keys()).collect();
    let mut out = Vec::new();
    for title in titles {
        let these = find(theirs, their_titles.get(title));
        let those = find(ours, our_titles.get(title));
        let mut found = Vec::new();
        // A scenario that neither side could finish has proved nothing.
        if title.0 != FAILURE && these.len() == those.len() {
            for (one, other) in these.iter().zip(&those) {
                compare::values("", one, other, &mut found);
            }
        } else {
            found.push(Difference {
                field: "(number)".to_owned(),
                rule: format!("{} not {} of {}", these.len(), those.len(), title.1),
                reference: Value::Array(these),
                pocket: Value::Array(those),
            });
        }
        out.extend(
            found
                .into_iter()
                .map(|found| (title.0.clone(), title.1.clone(), found)),
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn recording(steps: &[Value]) -> Recording {
        let steps = steps.iter().map(|object| vec![object.clone()]).collect();
        [("lone".to_owned(), steps)].into()
    }

    fn object(kind: &str, size: i64) -> Value {
        json!({"kind": kind, "metadata": {"name": "web"}, "spec": {"size": size}})
    }

    fn entry(kind: &str) -> PermittedDifference {
        PermittedDifference {
            kind: kind.to_owned(),
            field: "spec.size".to_owned(),
            rule: "N not N".to_owned(),
            reason: "a test".to_owned(),
        }
    }

    #[test]
    fn a_difference_is_told_once_and_allowed_by_what_names_it() {
        let theirs = recording(&[object("Pod", 1), object("Pod", 2)]);
        let ours = recording(&[object("Pod", 1), object("Pod", 3)]);
        assert!(findings(&theirs, &theirs, &[]).is_empty());
        let found = findings(&theirs, &ours, &[entry("Job"), entry("Pod")]);
        let told: Vec<_> = found.iter().map(|it| (it.step, it.allowed)).collect();
        assert_eq!(told, [(2, Some(1))]);
        assert!(
            findings(&theirs, &ours, &[entry("Job")])[0]
                .allowed
                .is_none()
        );
    }

    #[test]
    fn a_state_that_one_side_never_reached_differs() {
        let theirs = recording(&[object("Pod", 1), object("Pod", 2)]);
        let found = findings(&theirs, &recording(&[object("Pod", 1)]), &[]);
        assert_eq!(found[0].difference.rule, "1 not 0 of web");
    }

    #[test]
    fn a_failure_of_both_is_none_of_their_likeness() {
        let failed = recording(&[object(FAILURE, 1)]);
        let allow_all = PermittedDifference {
            field: "(number)".to_owned(),
            rule: "1 not 1".to_owned(),
            ..entry(FAILURE)
        };
        let found = findings(&failed, &failed, &[allow_all]);
        assert_eq!((found.len(), found[0].allowed), (1, None));
    }
}
