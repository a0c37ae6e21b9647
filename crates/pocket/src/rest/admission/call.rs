//! One webhook asked about one write.

use bytes::Bytes;
use serde_json::Value;

use super::matter::{Matter, place};
use crate::{
    admission::{
        Backend, Destination, Hook, Phase, Review,
        answer::{self, Answer},
        courier::Parcel,
        endpoint, sent,
    },
    crd::cel::Circumstances,
    kinds::{Cluster, label_selector},
    rest::{Machine, Served},
    status::{ApiError, Result},
};

impl Machine {
    /// Shows the objects to one webhook. `None` if its conditions spare it, or if it failed and may
    /// be passed over.
    pub(super) async fn ask_one(
        &self,
        hook: &Hook,
        phase: Phase,
        matter: &Matter<'_>,
        version: &Served,
        (object, old): (Option<&Value>, Option<&Value>),
        warnings: &mut Vec<String>,
    ) -> Result<Option<Answer>> {
        let uid = self.environment.uuid();
        let request = Self::request_shown(&uid, matter, version, object.or(old));
        let shown = |object: Option<&Value>| object.map(|value| matter.shown(version, value));
        let (object, old) = (
            shown(object).unwrap_or_default(),
            shown(old).unwrap_or_default(),
        );
        let circumstances = Circumstances {
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
            .consult(hook, phase, &uid, review.to_string().into())
            .await
        {
            Ok(answer) => answer,
            Err(why) if hook.ignored_when_failing => {
                tracing::warn!(webhook = %hook.name, %why, "a webhook failed and is passed over");
                return Ok(None);
            }
            Err(why) => return Err(answer::failed(&hook.name, &why)),
        };
        tell(warnings, answer.warnings.clone());
        match answer.refusal {
            Some(status) => Err(answer::refused(&hook.name, status)),
            None => Ok(Some(answer)),
        }
    }

    fn request_shown(
        uid: &str,
        matter: &Matter<'_>,
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

    /// Sends a review and reads the answer, or says why that failed.
    async fn consult(
        &self,
        hook: &Hook,
        phase: Phase,
        uid: &str,
        review: Bytes,
    ) -> Result<Answer, String> {
        let failed = |why: String| format!("failed to call webhook: {why}");
        let (url, parcel) = self.parcel(hook, review).map_err(failed)?;
        let posted = |why: String| failed(format!("Post \"{url}\": {why}"));
        let parcel = parcel.map_err(posted)?;
        let deadline = self.environment.clock.sleep(hook.timeout);
        let letter = tokio::select! {
            delivered = self.courier.deliver(&parcel) => delivered.map_err(posted)?,
            () = deadline => return Err(posted("context deadline exceeded".into())),
        };
        answer::read(&letter, uid, hook.version, phase)
    }

    /// Where a review goes: the URL as people are told of it, and what is sent or why it cannot be.
    fn parcel(&self, hook: &Hook, body: Bytes) -> Result<(String, Result<Parcel, String>), String> {
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
        let parcel = to.map(|to| Parcel {
            to,
            path: format!("{path}?{timeout}"),
            authorities: hook.authorities.clone(),
            body,
        });
        Ok((url, parcel))
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

/// Adds warnings that were not given yet: an update that is tried again asks again.
pub(super) fn tell(warnings: &mut Vec<String>, more: Vec<String>) {
    for text in more {
        if !warnings.contains(&text) {
            warnings.push(text);
        }
    }
}

/// The refusal of a write about which a condition could not be decided.
fn unclear(matter: &Matter<'_>, request: &Value, why: &str) -> ApiError {
    let resource = &matter.served.resource;
    let name = request["name"].as_str().unwrap_or_default();
    ApiError::forbidden(&resource.group, &resource.plural, name, why)
}
