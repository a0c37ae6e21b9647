//! Whether requests and limits lie within the namespace's LimitRanges.

use serde_json::Value;

use crate::{
    admission::plugins::{
        pod_requirements,
        usage::{Amounts, amounts, quantity},
    },
    quantity::Quantity,
};

/// The limits of one type in a range.
pub(super) fn of<'a>(range: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    let limits = range["spec"]["limits"].as_array().into_iter().flatten();
    limits.filter(move |limit| limit["type"] == kind)
}

/// The violations of a new pod, or of a claim, in the order of the ranges.
pub fn complaints(plural: &str, object: &Value, ranges: &[Value]) -> Vec<String> {
    let mut told = Vec::new();
    for range in ranges {
        for limit in range["spec"]["limits"].as_array().into_iter().flatten() {
            match (plural, limit["type"].as_str().unwrap_or_default()) {
                ("pods", kind @ "Container") => {
                    for list in ["containers", "initContainers"] {
                        let containers = object["spec"][list].as_array().into_iter().flatten();
                        for container in containers {
                            let resources = &container["resources"];
                            let asked = Requirements {
                                requests: amounts(&resources["requests"]),
                                limits: amounts(&resources["limits"]),
                            };
                            asked.judge(kind, limit, &mut told);
                        }
                    }
                }
                ("pods", kind @ "Pod") => {
                    let asked = Requirements {
                        requests: pod_requirements(&object["spec"], "requests"),
                        limits: pod_requirements(&object["spec"], "limits"),
                    };
                    asked.judge(kind, limit, &mut told);
                }
                ("persistentvolumeclaims", kind @ "PersistentVolumeClaim") => {
                    let requests = amounts(&object["spec"]["resources"]["requests"]);
                    for (side, word) in [("min", "minimum"), ("max", "maximum")] {
                        for (name, bound) in bounds(limit, side) {
                            let asked = requests.get(name).copied();
                            told.extend(claim_complaint(kind, word, name, bound, asked));
                        }
                    }
                }
                _ => {}
            }
        }
    }
    told
}

fn bounds<'a>(limit: &'a Value, side: &str) -> Vec<(&'a String, Quantity)> {
    let entries = limit[side].as_object().into_iter().flatten();
    entries
        .filter_map(|(name, value)| Some((name, quantity(value)?)))
        .collect()
}

fn claim_complaint(
    kind: &str,
    word: &str,
    name: &str,
    bound: Quantity,
    asked: Option<Quantity>,
) -> Option<String> {
    let begin = format!("{word} {name} usage per {kind} is {bound}");
    let Some(asked) = asked else {
        return Some(format!("{begin}.  No request is specified"));
    };
    let wrong = if word == "minimum" {
        asked < bound
    } else {
        asked > bound
    };
    wrong.then(|| format!("{begin}, but request is {asked}"))
}

struct Requirements {
    requests: Amounts,
    limits: Amounts,
}

impl Requirements {
    fn judge(&self, kind: &str, limit: &Value, told: &mut Vec<String>) {
        for (name, bound) in bounds(limit, "min") {
            told.extend(self.too_little(kind, name, bound));
        }
        for (name, bound) in bounds(limit, "max") {
            told.extend(self.too_much(kind, name, bound));
        }
        for (name, bound) in bounds(limit, "maxLimitRequestRatio") {
            told.extend(self.too_steep(kind, name, bound));
        }
    }

    fn too_little(&self, kind: &str, name: &str, bound: Quantity) -> Option<String> {
        let begin = format!("minimum {name} usage per {kind} is {bound}");
        let (request, limit) = (self.requests.get(name), self.limits.get(name));
        match (request, limit) {
            (None, _) => Some(format!("{begin}.  No request is specified")),
            (Some(request), _) if *request < bound => {
                Some(format!("{begin}, but request is {request}"))
            }
            (_, Some(limit)) if *limit < bound => Some(format!("{begin}, but limit is {limit}")),
            _ => None,
        }
    }

    fn too_much(&self, kind: &str, name: &str, bound: Quantity) -> Option<String> {
        let begin = format!("maximum {name} usage per {kind} is {bound}");
        let (request, limit) = (self.requests.get(name), self.limits.get(name));
        match (limit, request) {
            (None, _) => Some(format!("{begin}.  No limit is specified")),
            (Some(limit), _) if *limit > bound => Some(format!("{begin}, but limit is {limit}")),
            (_, Some(request)) if *request > bound => {
                Some(format!("{begin}, but request is {request}"))
            }
            _ => None,
        }
    }

    /// A ratio is shown with six digits and compared as floats, as kube-apiserver does.
    fn too_steep(&self, kind: &str, name: &str, bound: Quantity) -> Option<String> {
        let begin = format!("{name} max limit to request ratio per {kind} is {bound}, but");
        let given = |amounts: &Amounts| {
            amounts
                .get(name)
                .copied()
                .filter(|amount| !amount.is_zero())
        };
        let Some(request) = given(&self.requests) else {
            return Some(format!("{begin} no request is specified or request is 0"));
        };
        let Some(limit) = given(&self.limits) else {
            return Some(format!("{begin} no limit is specified or limit is 0"));
        };
        // Thousandths overflow for large amounts, and whole units are too coarse for small ones.
        let number = |amount: Quantity| match amount.milli_value() {
            i64::MAX => amount.value() as f64 * 1000.0,
            milli => milli as f64,
        };
        let ratio = number(limit) / number(request);
        (ratio > number(bound) / 1000.0).then(|| format!("{begin} provided ratio is {ratio:.6}"))
    }
}
