//! What is answered and never stored: reviews of who somebody is and what they may do.
//!
//! A review is shaped, booked and checked like an object that is created, and then answered: what
//! comes back is the review with its status filled in.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use crate::{
    rest::{
        Machine, Reply, Request, Served,
        incoming::{Origin, shape},
        metadata,
        registry::missing,
        reply::finish,
        update::Part,
    },
    status::{ApiError, Problems, Result},
};

impl Machine {
    /// Answers a question.
    pub(in crate::rest) async fn answer(
        &self,
        request: &Request,
        served: &Arc<Served>,
    ) -> Result<Reply> {
        let mut warnings = Vec::new();
        let payload = request.payload()?;
        let mut review = shape(request, served, payload, Origin::Body, &mut warnings)?;
        request.dry_run()?;
        let metadata = metadata::of(&mut review);
        if served.resource.namespaced {
            metadata.insert("namespace".into(), json!(request.target.namespace));
        }
        self.book(request, served, Part::Main, None, &mut review)?;
        check(served, &review)?;
        let answered = self.answered(request, served, review)?;
        let reply = finish(request, StatusCode::CREATED, answered.to_string().into())?;
        Ok(reply.with_warnings(warnings))
    }

    fn answered(&self, request: &Request, served: &Served, review: Value) -> Result<Value> {
        match &*served.resource.plural {
            "selfsubjectreviews" => Ok(self.review_self(request, &review)),
            "tokenreviews" => self.review_token(review),
            "selfsubjectaccessreviews" => Ok(self.review_own_access(request, review)),
            "selfsubjectrulesreviews" => self.review_rules(request, &review),
            "subjectaccessreviews" | "localsubjectaccessreviews" => Ok(self.review_access(review)),
            _ => Err(missing()),
        }
    }
}

/// Refuses a question that cannot be answered. The refusal names no kind: none is stored.
fn check(served: &Served, review: &Value) -> Result<()> {
    let mut problems = Problems::new();
    (served.rules().validate)(review, &mut problems);
    if problems.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(&served.resource.group, "", "", &problems))
}
