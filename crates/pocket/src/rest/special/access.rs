//! Access reviews, answered by the same decision as every request.

use serde_json::{Value, json};

use crate::{
    access::{AccessTarget, Attributes, Requester},
    rest::{Machine, Request},
    status::{ApiError, Result},
};

impl Machine {
    /// Answers a SubjectAccessReview or one for a namespace.
    pub(super) fn review_access(&self, mut review: Value) -> Value {
        let spec = &review["spec"];
        let groups = spec["groups"].as_array().into_iter().flatten();
        let groups: Vec<String> = groups.map(|group| text(group).to_owned()).collect();
        let who = Requester {
            name: text(&spec["user"]),
            groups: &groups,
        };
        review["status"] = self.verdict(&asked(who, spec));
        review
    }

    /// Answers a SelfSubjectAccessReview.
    pub(super) fn review_own_access(&self, request: &Request, mut review: Value) -> Value {
        review["status"] = self.verdict(&asked(request.user.who(), &review["spec"]));
        review
    }

    fn verdict(&self, asked: &Attributes<'_>) -> Value {
        let decision = self.access.decide(asked);
        let mut status = json!({"allowed": decision.allowed});
        if !decision.reason.is_empty() {
            status["reason"] = decision.reason.into();
        }
        status
    }

    /// Answers a SelfSubjectRulesReview: all rules of the user in a namespace.
    pub(super) fn review_rules(&self, request: &Request, review: &Value) -> Value {
        let namespace = text(&review["spec"]["namespace"]);
        let held = self.access.held(request.user.who(), namespace);
        let (paths, resources): (Vec<_>, Vec<_>) =
            held.rules.iter().partition(|rule| !rule.paths.is_empty());
        let mut status = json!({
            "resourceRules": resources,
            "nonResourceRules": paths,
            "incomplete": false,
        });
        if let Some(problems) = held.problems() {
            status["evaluationError"] = problems.into();
        }
        json!({
            "kind": review["kind"],
            "apiVersion": review["apiVersion"],
            "metadata": {},
            "spec": {},
            "status": status,
        })
    }
}

/// Refuses a rules review without a namespace.
pub(super) fn check_namespace(review: &Value) -> Result<()> {
    if text(&review["spec"]["namespace"]).is_empty() {
        return Err(ApiError::bad_request("no namespace on request"));
    }
    Ok(())
}

/// The attributes that a review asks about, for `who`.
fn asked<'a>(who: Requester<'a>, spec: &'a Value) -> Attributes<'a> {
    if let Some(path) = spec.get("nonResourceAttributes") {
        return Attributes {
            who,
            verb: text(&path["verb"]),
            what: AccessTarget::Path(text(&path["path"])),
        };
    }
    let resource = &spec["resourceAttributes"];
    Attributes {
        who,
        verb: text(&resource["verb"]),
        what: AccessTarget::Resource {
            group: text(&resource["group"]),
            resource: text(&resource["resource"]),
            subresource: text(&resource["subresource"]),
            name: text(&resource["name"]),
            namespace: text(&resource["namespace"]),
        },
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
