//! Kinds that are answered and never stored: token reviews and access reviews.
//!
//! A review is normalized, tracked and validated like an object that is created, and then answered:
//! the reply is the review with its status filled in.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use crate::{
    admission::{GroupVersionKind, Operation},
    rest::{
        Machine, Reply, Request, Served,
        admission::ReviewedWrite,
        incoming::{Origin, shape},
        metadata,
        registry::missing,
        reply::finish,
        update::ObjectPart,
    },
    status::{ApiError, Problems, Result},
};

use super::{access, identity};

impl Machine {
    /// Answers a review.
    pub(in crate::rest) async fn answer(
        &self,
        request: &Request,
        served: &Arc<Served>,
    ) -> Result<Reply> {
        if &*served.resource.plural == "bindings" {
            return self.bind_named(request, served).await;
        }
        let mut warnings = Vec::new();
        let payload = request.payload()?;
        let mut review = shape(request, served, payload, Origin::Body, &mut warnings)?;
        request.dry_run()?;
        let metadata = metadata::of(&mut review);
        if served.resource.namespaced {
            metadata.insert("namespace".into(), json!(request.target.namespace));
        }
        self.record_ownership(request, served, ObjectPart::Main, None, &mut review)?;
        let kind = GroupVersionKind {
            group: &served.resource.group,
            version: &served.version,
            kind: &served.resource.kind,
        };
        let matter = ReviewedWrite::action(request, served, Operation::Create, kind);
        self.change_action(&matter, &mut review, &mut warnings)
            .await?;
        check(served, &review)?;
        self.agree_to_action(&matter, &review, &mut warnings)
            .await?;
        let answered = self.answered(request, served, review)?;
        let reply = finish(request, StatusCode::CREATED, answered.to_string().into())?;
        Ok(reply.with_warnings(warnings))
    }

    fn answered(&self, request: &Request, served: &Served, review: Value) -> Result<Value> {
        match &*served.resource.plural {
            "selfsubjectreviews" => Ok(self.review_self(request, &review)),
            "tokenreviews" => Ok(self.review_token(review)),
            "selfsubjectaccessreviews" => Ok(self.review_own_access(request, review)),
            "selfsubjectrulesreviews" => Ok(self.review_rules(request, &review)),
            "subjectaccessreviews" | "localsubjectaccessreviews" => Ok(self.review_access(review)),
            _ => Err(missing()),
        }
    }
}

/// Refuses a review that cannot be answered. The error names no kind: none is stored.
fn check(served: &Served, review: &Value) -> Result<()> {
    match &*served.resource.plural {
        "tokenreviews" => identity::check_token(review)?,
        "selfsubjectrulesreviews" => access::check_namespace(review)?,
        _ => {}
    }
    let mut problems = Problems::new();
    (served.rules().validate)(review, &mut problems);
    if problems.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(&served.resource.group, "", "", &problems))
}
