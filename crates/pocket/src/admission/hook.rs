//! One webhook of a configuration, parsed once.

mod rule;

use std::{sync::Arc, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;

use super::WriteAttributes;
use crate::{
    crd::cel::{Condition, ConditionInput},
    kinds::label_selector,
};
use rule::WebhookRule;

/// The version of the review a webhook is sent: the newest that both sides know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewVersion {
    /// `admission.k8s.io/v1`.
    V1,
    /// `admission.k8s.io/v1beta1`: the same review, with fewer demands on the response.
    V1Beta1,
}

impl ReviewVersion {
    /// The `apiVersion` of reviews.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "admission.k8s.io/v1",
            Self::V1Beta1 => "admission.k8s.io/v1beta1",
        }
    }
}

/// The address of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backend {
    /// Behind an URL.
    Url(String),
    /// Behind a service of the cluster.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// The path, with its leading slash.
        path: String,
        /// The service's port.
        port: u16,
    },
}

/// One webhook.
#[derive(Debug)]
pub struct Webhook {
    /// Used in refusals.
    pub name: String,
    /// Whether the webhook is skipped when it cannot be called (`failurePolicy: Ignore`).
    pub ignored_when_failing: bool,
    /// The timeout of a call.
    pub timeout: Duration,
    /// Whether it is called again when later webhooks changed the object (`reinvocationPolicy`).
    pub reinvoked: bool,
    pub version: ReviewVersion,
    pub backend: Backend,
    /// The certificate authorities that its certificate must chain to, in PEM.
    pub authorities: Option<Arc<[u8]>>,
    rules: Vec<WebhookRule>,
    /// Whether rules that name another version of the resource count too (`matchPolicy`).
    equivalent: bool,
    namespace_selector: Value,
    object_selector: Value,
    /// Compiled, or why not: a stored configuration may be older than the current checks.
    conditions: Vec<Result<Condition, String>>,
}

impl Webhook {
    /// Parses one entry of `webhooks`, with its defaults filled in.
    pub fn read(entry: &Value) -> Self {
        let text = |key: &str| entry[key].as_str().unwrap_or_default();
        let list = |key: &str| entry[key].as_array().map(Vec::as_slice).unwrap_or_default();
        let client = &entry["clientConfig"];
        let seconds = entry["timeoutSeconds"].as_u64().unwrap_or(10);
        Self {
            name: text("name").into(),
            ignored_when_failing: text("failurePolicy") == "Ignore",
            timeout: Duration::from_secs(seconds),
            reinvoked: text("reinvocationPolicy") == "IfNeeded",
            version: version(list("admissionReviewVersions")),
            backend: backend(client),
            authorities: authorities(&client["caBundle"]),
            rules: list("rules").iter().map(WebhookRule::read).collect(),
            equivalent: text("matchPolicy") != "Exact",
            namespace_selector: entry["namespaceSelector"].clone(),
            object_selector: entry["objectSelector"].clone(),
            conditions: list("matchConditions")
                .iter()
                .map(|condition| {
                    Condition::compile(condition["expression"].as_str().unwrap_or_default())
                })
                .collect(),
        }
    }

    /// The index of the resource name under which this webhook wants to be called, if at all.
    /// Conditions are evaluated later: they need the review.
    pub fn wants(&self, ask: &WriteAttributes<'_>) -> Option<usize> {
        let place = self.place(ask)?;
        let home = ask.namespace_labels;
        let at_home = home.is_none_or(|labels| selects(&self.namespace_selector, labels));
        let selected = label_selector::is_empty(&self.object_selector)
            || [ask.object, ask.old]
                .into_iter()
                .flatten()
                .any(|object| selects(&self.object_selector, &object["metadata"]["labels"]));
        (at_home && selected).then_some(place)
    }

    fn place(&self, ask: &WriteAttributes<'_>) -> Option<usize> {
        let rules = || self.rules.iter();
        let requested = ask.places.first()?;
        if rules().any(|rule| rule.matches(ask, requested)) {
            return Some(0);
        }
        if !self.equivalent {
            return None;
        }
        // By rules first: the earliest matching rule decides in which version the webhook gets its
        // objects.
        rules().find_map(|rule| {
            let mut others = ask.places.iter().enumerate().skip(1);
            others.find_map(|(index, place)| rule.matches(ask, place).then_some(index))
        })
    }

    /// Whether all conditions hold. A single false one decides, whatever errors the others have;
    /// otherwise all errors are reported.
    pub fn conditions_hold(&self, of: ConditionInput<'_>) -> Result<bool, String> {
        let mut wrong = Vec::new();
        for condition in &self.conditions {
            match condition
                .as_ref()
                .map_err(Clone::clone)
                .and_then(|c| c.holds(of))
            {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(why) => wrong.push(why),
            }
        }
        match wrong.as_slice() {
            [] => Ok(true),
            [one] => Err(one.clone()),
            all => Err(format!("[{}]", all.join(", "))),
        }
    }

    pub fn has_conditions(&self) -> bool {
        !self.conditions.is_empty()
    }
}

/// The usual matching, except that labels may be absent altogether.
fn selects(selector: &Value, labels: &Value) -> bool {
    selector.is_null() || label_selector::matches(selector, labels)
}

fn version(known: &[Value]) -> ReviewVersion {
    let first = known.iter().find_map(|version| match version.as_str()? {
        "v1" => Some(ReviewVersion::V1),
        "v1beta1" => Some(ReviewVersion::V1Beta1),
        _ => None,
    });
    first.unwrap_or(ReviewVersion::V1)
}

fn backend(client: &Value) -> Backend {
    let service = &client["service"];
    let text = |key: &str| service[key].as_str().unwrap_or_default().to_owned();
    if service.is_null() {
        return Backend::Url(client["url"].as_str().unwrap_or_default().to_owned());
    }
    let port = service["port"].as_u64().unwrap_or(443);
    Backend::Service {
        namespace: text("namespace"),
        name: text("name"),
        path: format!("/{}", text("path").trim_start_matches('/')),
        port: u16::try_from(port).unwrap_or(443),
    }
}

fn authorities(bundle: &Value) -> Option<Arc<[u8]>> {
    let text = bundle.as_str().filter(|text| !text.is_empty())?;
    BASE64_STANDARD.decode(text).ok().map(Into::into)
}

#[cfg(test)]
mod tests;
