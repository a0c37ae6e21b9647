//! One call of a webhook for one write.

use std::collections::HashSet;

use bytes::Bytes;
use serde_json::Value;

use super::reviewed_write::{ReviewedWrite, place};
use crate::{
    admission::{
        Backend, Destination, Phase, Review, Webhook, endpoint,
        response::{self, AdmissionResponse},
        sent,
        webhook_client::WebhookRequest,
    },
    crd::cel::ConditionInput,
    kinds::{Cluster, label_selector},
    rest::{Machine, Served},
    status::{ApiError, Result},
};

impl Machine {
    /// Calls one webhook. `None` if its conditions exclude the write, or if it failed and may be
    /// ignored.
    pub(super) async fn call_webhook(
        &self,
        hook: &Webhook,
        phase: Phase,
        matter: &ReviewedWrite<'_>,
        version: &Served,
        (object, old): (Option<&Value>, Option<&Value>),
        warnings: &mut Vec<String>,
    ) -> Result<Option<AdmissionResponse>> {
        let uid = self.environment.uuid();
        let request = Self::request_shown(&uid, matter, version, object.or(old));
        let shown = |object: Option<&Value>| object.map(|value| matter.shown(version, value));
        let (object, old) = (
            shown(object).unwrap_or_default(),
            shown(old).unwrap_or_default(),
        );
        let circumstances = ConditionInput {
            request: &request,
            object: &object,
            old: &old,
        };
        match hook.conditions_hold(circumstances) {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(_) if hook.ignored_when_failing => return Ok(None),
            Err(why) => return Err(unclear(matter, &request, &why)),
        }
        let review = sent(hook.version, request, object, old);
        let answer = match self
            .review(hook, phase, &uid, review.to_string().into())
            .await
        {
            Ok(answer) => answer,
            Err(why) if hook.ignored_when_failing => {
                tracing::warn!(webhook = %hook.name, %why, "a webhook failed and is ignored");
                return Ok(None);
            }
            Err(why) => return Err(response::failed(&hook.name, &why)),
        };
        add_warnings(warnings, answer.warnings.clone());
        match answer.refusal {
            Some(status) => Err(response::refused(&hook.name, status)),
            None => Ok(Some(answer)),
        }
    }

    fn request_shown(
        uid: &str,
        matter: &ReviewedWrite<'_>,
        version: &Served,
        object: Option<&Value>,
    ) -> Value {
        let object = object.filter(|_| matter.operation == crate::admission::Operation::Create);
        let name = matter.name(object);
        Review {
            uid,
            operation: matter.operation,
            kind: matter.kind(version),
            place: place(version),
            requested_kind: matter.kind(matter.served),
            requested_place: place(matter.served),
            subresource: matter.subresource(),
            name,
            namespace: matter.namespace(name),
            user: &matter.request.user.to_value(),
            options: &matter.options(),
            dry_run: matter.dry_run(),
        }
        .request()
    }

    /// Sends a review and parses the response, or says why that failed.
    async fn review(
        &self,
        hook: &Webhook,
        phase: Phase,
        uid: &str,
        review: Bytes,
    ) -> Result<AdmissionResponse, String> {
        let failed = |why: String| format!("failed to call webhook: {why}");
        let (url, outgoing) = self.outgoing(hook, review).map_err(failed)?;
        let posted = |why: String| failed(format!("Post \"{url}\": {why}"));
        let outgoing = outgoing.map_err(posted)?;
        let deadline = self.environment.clock.sleep(hook.timeout);
        let letter = tokio::select! {
            delivered = self.webhook_client.deliver(&outgoing) => delivered.map_err(posted)?,
            () = deadline => return Err(posted("context deadline exceeded".into())),
        };
        response::read(&letter, uid, hook.version, phase)
    }

    /// The destination of a review: the URL for messages, and the request or why it cannot be made.
    fn outgoing(
        &self,
        hook: &Webhook,
        body: Bytes,
    ) -> Result<(String, Result<WebhookRequest, String>), String> {
        let timeout = format!("timeout={}s", hook.timeout.as_secs());
        let (url, to, path) = match &hook.backend {
            Backend::Url(url) => {
                let uri: http::Uri = url.parse().map_err(|_| format!("parse {url:?}"))?;
                let to = Destination {
                    host: uri
                        .host()
                        .unwrap_or_default()
                        .trim_matches(['[', ']'])
                        .to_owned(),
                    port: uri.port_u16().unwrap_or(443),
                    endpoint: None,
                };
                (format!("{url}?{timeout}"), Ok(to), uri.path().to_owned())
            }
            Backend::Service {
                namespace,
                name,
                path,
                port,
            } => {
                let host = format!("{name}.{namespace}.svc");
                let url = format!("https://{host}:{port}{path}?{timeout}");
                let endpoint = self.endpoint_of(namespace, name, *port);
                let to = endpoint.map(|endpoint| Destination {
                    host,
                    port: *port,
                    endpoint: Some(endpoint),
                });
                (url, to, path.clone())
            }
        };
        let outgoing = to.map(|to| WebhookRequest {
            to,
            path: format!("{path}?{timeout}"),
            authorities: hook.authorities.clone(),
            body,
        });
        Ok((url, outgoing))
    }

    fn endpoint_of(
        &self,
        namespace: &str,
        name: &str,
        port: u16,
    ) -> Result<std::net::SocketAddr, String> {
        let service = self.get_any("", "services", namespace, name);
        let selector = serde_json::json!({"matchLabels": {"kubernetes.io/service-name": name}});
        let mut slices = Cluster::list(self, "discovery.k8s.io", "endpointslices", namespace);
        slices.retain(|slice| label_selector::matches(&selector, &slice["metadata"]["labels"]));
        let endpoints = self.get_any("", "endpoints", namespace, name);
        endpoint(name, service.as_ref(), port, &slices, endpoints.as_ref())
    }

    fn get_any(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Value> {
        Cluster::get(self, group, plural, namespace, name)
    }
}

/// Adds warnings that were not given yet: a retried update calls the webhooks again.
pub(super) fn add_warnings(warnings: &mut Vec<String>, more: Vec<String>) {
    let mut seen: HashSet<String> = warnings.iter().cloned().collect();
    warnings.extend(more.into_iter().filter(|text| seen.insert(text.clone())));
}

/// The refusal of a write because a condition could not be evaluated.
fn unclear(matter: &ReviewedWrite<'_>, request: &Value, why: &str) -> ApiError {
    let resource = &matter.served.resource;
    let name = request["name"].as_str().unwrap_or_default();
    ApiError::forbidden(&resource.group, &resource.plural, name, why)
}
