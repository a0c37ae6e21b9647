//! Subresources that only pods have: binding to a node, eviction, logs.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::StreamExt;
use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    admission::{GroupVersionKind, Operation},
    kinds,
    rest::{
        Machine, Reply, ReplyBody, Request, Served, Target, Verb,
        admission::ReviewedWrite,
        broken,
        create::FieldOwnership,
        delete::DeleteOptions,
        metadata,
        own::own_request,
        registry::missing,
        update::{BINDING, MAX_ATTEMPTS, ObjectPart, Proposal},
    },
    runtime::{self, LogOptions},
    status::{ApiError, Result},
    store,
};

use super::scale::copy_preconditions;

/// The kinds that webhooks are shown for a binding and for an eviction.
const BINDING_KIND: GroupVersionKind<'static> = GroupVersionKind {
    group: "",
    version: "v1",
    kind: "Binding",
};
const EVICTION_KIND: GroupVersionKind<'static> = GroupVersionKind {
    group: "policy",
    version: "v1",
    kind: "Eviction",
};

impl Machine {
    /// Assigns a pod to a node; a second binding is a conflict.
    pub(super) async fn bind(&self, request: &Request, served: &Arc<Served>) -> Result<Reply> {
        let shown = ReviewedWrite::action(request, served, Operation::Create, BINDING_KIND);
        self.bind_as(shown, request, served).await
    }

    /// As [`Self::bind`], with the pod's name only in the binding.
    pub(super) async fn bind_named(
        &self,
        request: &Request,
        served: &Arc<Served>,
    ) -> Result<Reply> {
        let shown = ReviewedWrite::action(request, served, Operation::Create, BINDING_KIND);
        let mut target = Target {
            plural: "pods".into(),
            ..request.target.clone()
        };
        let pods = self.registry.find(&target)?;
        let named = request.payload()?.value;
        metadata::text(&named, "name").clone_into(&mut target.name);
        if target.name.is_empty() {
            return Err(ApiError::bad_request("Name parameter required."));
        }
        let named = Request {
            target,
            ..request.clone()
        };
        self.bind_as(shown, &named, &pods).await
    }

    async fn bind_as(
        &self,
        shown: ReviewedWrite<'_>,
        request: &Request,
        served: &Arc<Served>,
    ) -> Result<Reply> {
        let mut binding = request.payload()?.value;
        let mut warnings = Vec::new();
        self.change_action(&shown, &mut binding, &mut warnings)
            .await?;
        kinds::check_binding(&binding, &request.target.name)?;
        self.agree_to_action(&shown, &binding, &mut warnings)
            .await?;
        let target = binding["target"]["name"].as_str().unwrap_or_default();
        if let Some(node) = kinds::Cluster::get(self, "", "nodes", "", target) {
            kinds::copy_topology(&mut binding, &node);
        }
        let moment = self.moment();
        let resource = &served.resource;
        let name = &request.target.name;
        let change = |old: &Value| {
            let mut value = kinds::bind(old, &binding, &moment).map_err(|why| {
                ApiError::conflict(
                    &resource.group,
                    &format!("{}/binding", resource.plural),
                    name,
                    &why,
                )
            })?;
            copy_preconditions(&mut value, &binding);
            Ok(Proposal {
                value,
                ownership: FieldOwnership::Done,
            })
        };
        self.modify(request, served, BINDING, &mut warnings, change)
            .await?;
        Ok(Reply::value(StatusCode::CREATED, &success()).with_warnings(warnings))
    }

    /// Deletes a pod unless a disruption budget forbids it.
    pub(super) async fn evict(&self, request: &Request, served: &Arc<Served>) -> Result<Reply> {
        let mut request = request.clone();
        let mut eviction = request.payload()?.value;
        let mut warnings = Vec::new();
        let shown = ReviewedWrite::action(&request, served, Operation::Create, EVICTION_KIND);
        self.admit_action(&shown, &mut eviction, &mut warnings)
            .await?;
        if let Some(body) = request.body.as_mut() {
            body.value = eviction.get("deleteOptions").cloned().unwrap_or_default();
        }
        let mut options = DeleteOptions::of(&request)?;
        let pod = self.read(&request, served).await?;
        let budget = kinds::eviction_budget(&pod.value(), self, &self.moment());
        if budget.is_err() {
            self.settle_all().await?;
        }
        let budget = budget?;
        // Another pod of the same name was not checked.
        let judged = || pod.metadata().uid.to_string();
        options.uid.get_or_insert_with(judged);
        if let Some(budget) = budget.filter(|_| !options.dry_run) {
            self.spend(budget).await?;
        }
        let judged = options.uid.as_deref() == Some(&*pod.metadata().uid);
        if judged && !options.dry_run && options.revision.is_none() {
            self.mark_evicted(&request, served).await?;
        }
        self.remove(
            served,
            &request.target.namespace,
            &request.target.name,
            &options,
        )
        .await?;
        Ok(Reply::value(StatusCode::CREATED, &success()).with_warnings(warnings))
    }

    /// Takes one disruption from a budget, so that concurrent evictions cannot overspend it.
    async fn spend(&self, mut budget: kinds::Budget) -> Result<()> {
        let bucket = budget.bucket;
        if let Some(old) = self.head_of(bucket, &budget.path) {
            let budgets = self.stored_in(bucket)?;
            let request = own_request(&budgets, Verb::Update, "", "");
            let (old, new) = (old.value(), &mut budget.object);
            self.record_ownership(&request, &budgets, ObjectPart::Status, Some(&old), new)?;
        }
        let expect = store::Expect::Revision(budget.revision);
        let put = store::Put::Object(&budget.object);
        let now = self.environment.clock.now();
        let written = self
            .view
            .write(bucket, &budget.path, expect, put, now)
            .await?;
        match written {
            Ok(_) => Ok(()),
            Err(store::Error::Conflict) => Err(too_many_requests(
                "the disruption budget changed; try again",
            )),
            Err(error) => Err(broken(&error)),
        }
    }

    /// Sets the disruption condition on a pod before it is deleted: its controller may then not
    /// count it as a failure.
    async fn mark_evicted(&self, request: &Request, served: &Arc<Served>) -> Result<()> {
        for _ in 0..MAX_ATTEMPTS {
            let pod = self.read(request, served).await?;
            let marked = kinds::mark_evicted(&pod.value(), &self.moment());
            let place = request.target.path();
            if self.put(served, &place, &pod, &marked).await?.is_some() {
                return Ok(());
            }
        }
        Err(served.stale(&request.target.name))
    }

    pub(super) async fn log(&self, request: &Request, served: &Arc<Served>) -> Result<Reply> {
        let runtime = self.runtime.clone().ok_or_else(missing)?;
        let pod = self.read(request, served).await?.value();
        let asked = request.parameter("container").unwrap_or_default();
        let number = |name| -> Result<Option<u64>> {
            Ok(request.number(name)?.and_then(|n| u64::try_from(n).ok()))
        };
        let options = LogOptions {
            container: runtime::container(&pod, asked)?,
            follow: request.flag("follow"),
            previous: request.flag("previous"),
            tail_lines: number("tailLines")?,
            since: self.since(request, number("sinceSeconds")?)?,
            timestamps: request.flag("timestamps"),
            limit_bytes: number("limitBytes")?,
        };
        let mut reply = Reply {
            status: StatusCode::OK,
            content_type: "text/plain",
            warnings: Vec::new(),
            body: ReplyBody::Full(Bytes::new()),
        };
        if runtime::is_scheduled(&pod) {
            let lines = runtime.log(pod, options).await?;
            reply.body = ReplyBody::Stream(lines.boxed());
        } else {
            // The container has not printed anything.
            reply.status = StatusCode::NO_CONTENT;
        }
        Ok(reply)
    }

    /// The time from which lines are requested.
    fn since(&self, request: &Request, seconds: Option<u64>) -> Result<Option<Timestamp>> {
        if let Some(seconds) = seconds {
            let now = self.environment.clock.now();
            return Ok(now.checked_sub(Duration::from_secs(seconds)).ok());
        }
        let time = request.parameter("sinceTime");
        let time = time.filter(|time| !time.is_empty());
        time.map(|time| {
            let wrong = |error| ApiError::bad_request(format!("sinceTime: {error}"));
            time.parse().map_err(wrong)
        })
        .transpose()
    }
}

/// 429 for an eviction that a budget does not allow now.
fn too_many_requests(message: &str) -> ApiError {
    let mut error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message);
    error.retry_after = Some(10);
    error
}

fn success() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
}
