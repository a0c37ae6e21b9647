//! Lists: pages of a snapshot, selectors, and the semantics of resource versions.

mod items;

use std::{sync::Arc, time::Duration};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use bytes::Bytes;
use futures::StreamExt;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    Machine, Reply, ReplyBody, Request, Served, Verb,
    bulk::BULK_THRESHOLD,
    reply::{JSON, finish},
    request::option_error,
};
use crate::{
    rest::selection::Selection,
    status::{ApiError, Problems, Result},
    store::{self, KeyRange, Object, Page},
};

use items::Items;

/// How long a request for a future revision waits.
const FUTURE_REVISION_TIMEOUT: Duration = Duration::from_secs(3);

/// A continue token: where the next page begins. The format is that of kube-apiserver.
#[derive(Debug, Serialize, Deserialize)]
struct Continue {
    v: String,
    rv: u64,
    start: String,
}

const TOKEN_VERSION: &str = "meta.k8s.io/v1";

/// The revision at which a list is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadRevision {
    Newest,
    NotOlderThan(u64),
    Exactly(u64),
}

/// One page of a list after selection.
pub(crate) struct ListPage {
    pub(crate) revision: u64,
    pub(crate) objects: Vec<Arc<Object>>,
    pub(crate) next: Option<String>,
    pub(crate) remaining: Option<usize>,
}

impl Machine {
    pub(super) async fn list(&self, request: &Request, served: &Arc<Served>) -> Result<Reply> {
        // Malformed parameters are reported before invalid combinations.
        request.number("limit")?;
        request.number("timeoutSeconds")?;
        Selection::check_form(request)?;
        if request.names("sendInitialEvents") {
            let mut problems = Problems::new();
            problems.forbidden(
                "sendInitialEvents",
                "sendInitialEvents is forbidden for list",
            );
            return Err(option_error("list", &problems));
        }
        let listed = self.select(request, served).await?;
        // YAML is rendered from the whole list, so it cannot be streamed.
        if listed.objects.len() < BULK_THRESHOLD || request.presentation.yaml {
            let body = self.render(request, served, listed)?;
            return finish(request, StatusCode::OK, body);
        }
        let items = Items::new(self, request, served, listed)?;
        Ok(Reply {
            status: StatusCode::OK,
            content_type: JSON,
            warnings: Vec::new(),
            body: ReplyBody::Parts(items.into_stream().boxed()),
        })
    }

    /// The objects of a list request.
    pub(crate) async fn select(&self, request: &Request, served: &Served) -> Result<ListPage> {
        let limit = request
            .number("limit")?
            .and_then(|n| usize::try_from(n).ok())
            // A request for any revision gets the whole list, without pages.
            .filter(|&n| n > 0 && request.parameter("resourceVersion") != Some("0"));
        check_matching(request)?;
        let selection = Selection::of(request, served)?;
        let token = request
            .parameter("continue")
            .map(decode_token)
            .transpose()?;
        // A single object by its name has no pages, unless the request continues a list.
        let alone =
            token.is_none() && request.verb != Verb::DeleteCollection && selection.is_one(served);
        let at = revision_rule(request, token.as_ref(), limit.is_some() && !alone)?;
        let revision = match at {
            ReadRevision::Newest => None,
            ReadRevision::NotOlderThan(revision) => {
                self.not_older_than(revision).await?;
                None
            }
            ReadRevision::Exactly(revision) => {
                self.not_older_than(revision).await?;
                Some(revision)
            }
        };
        let range = KeyRange {
            namespace: &request.target.namespace,
            after: token
                .as_ref()
                .map(|token| token.start.trim_end_matches('\0')),
            // With a selector the number of objects to read is unknown.
            limit: limit.filter(|_| selection.is_everything()),
        };
        let bucket = &served.resource.bucket;
        let there = self.view.store().count(bucket);
        let most = limit.map_or(there, |limit| limit.min(there));
        let _turn = self.bulk.turn(most).await;
        let page = self.view.page(bucket, range, revision).await?;
        let page = page.map_err(|error| expired(&error, token.as_ref(), self.view.revision()))?;
        Ok(cut(served, page, &selection, limit, alone))
    }

    pub(super) fn render(
        &self,
        request: &Request,
        served: &Arc<Served>,
        listed: ListPage,
    ) -> Result<Bytes> {
        Ok(Items::new(self, request, served, listed)?.whole())
    }

    /// Waits a little for a future revision, then refuses.
    pub(crate) async fn not_older_than(&self, revision: u64) -> Result<()> {
        if self.view.revision() >= revision {
            return Ok(());
        }
        let patience = self.environment.clock.sleep(FUTURE_REVISION_TIMEOUT);
        let shown = self.view.shows(revision);
        tokio::select! {
            biased;
            result = shown => result.map_err(|error| super::broken(&error)),
            () = patience => Err(too_new(revision, self.view.revision())),
        }
    }
}

impl ListPage {
    /// Whole lists of custom objects have a continue token even when it is empty.
    fn metadata(&self, always_continues: bool) -> Value {
        let mut metadata = json!({"resourceVersion": self.revision.to_string()});
        if let Some(token) = &self.next {
            metadata["continue"] = json!(token);
        } else if always_continues {
            metadata["continue"] = json!("");
        }
        if let Some(remaining) = self.remaining {
            metadata["remainingItemCount"] = json!(remaining);
        }
        metadata
    }
}

/// Keeps the selected objects, up to the limit.
fn cut(
    served: &Served,
    page: Page,
    selection: &Selection,
    limit: Option<usize>,
    alone: bool,
) -> ListPage {
    let mut objects = Vec::new();
    let mut last = None;
    let mut rest = page.objects.into_iter();
    let mut full = false;
    for (key, object) in rest.by_ref() {
        if selection.matches(served, &object) {
            objects.push(object);
            if limit.is_some_and(|limit| objects.len() >= limit) {
                last = Some(key);
                full = true;
                break;
            }
        }
    }
    // The remaining objects are counted without the selector; a single object by its name has no
    // rest.
    let remaining = if full && !alone {
        rest.len() + page.remaining
    } else {
        0
    };
    let next = last
        .filter(|_| remaining > 0)
        .map(|key| encode_token(page.revision, &key));
    ListPage {
        revision: page.revision,
        objects,
        remaining: (next.is_some() && selection.is_everything()).then_some(remaining),
        next,
    }
}

const MATCH: &str = "resourceVersionMatch";

/// Refuses a `resourceVersionMatch` that contradicts the other parameters.
fn check_matching(request: &Request) -> Result<()> {
    let Some(matching) = request.parameter(MATCH) else {
        return Ok(());
    };
    let given = request.parameter("resourceVersion");
    let mut problems = Problems::new();
    if given.is_none() {
        let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
        problems.forbidden(MATCH, detail);
    }
    if request.parameter("continue").is_some() {
        let detail = "resourceVersionMatch is forbidden when continue is provided";
        problems.forbidden(MATCH, detail);
    }
    if !matches!(matching, "Exact" | "NotOlderThan") {
        problems.not_supported(MATCH, matching, &["Exact", "NotOlderThan", ""]);
    }
    if matching == "Exact" && given == Some("0") {
        let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
        problems.forbidden(MATCH, detail);
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(option_error("list", &problems))
}

fn revision_rule(
    request: &Request,
    token: Option<&Continue>,
    limited: bool,
) -> Result<ReadRevision> {
    let given = request.parameter("resourceVersion");
    if let Some(token) = token {
        if given.is_some_and(|rv| rv != "0") {
            let message = "specifying resource version is not allowed when using continue";
            return Err(ApiError::bad_request(message));
        }
        return Ok(ReadRevision::Exactly(token.rv));
    }
    Ok(
        match (request.parameter(MATCH), request.revision("list")?) {
            (Some("Exact"), Some(revision)) => ReadRevision::Exactly(revision),
            // Pages of a given revision are pages of exactly that revision.
            (None, Some(revision)) if limited => ReadRevision::Exactly(revision),
            (_, Some(revision)) => ReadRevision::NotOlderThan(revision),
            (_, None) => ReadRevision::Newest,
        },
    )
}

fn encode_token(revision: u64, key: &str) -> String {
    let token = json!({"v": TOKEN_VERSION, "rv": revision, "start": format!("{key}\0")});
    BASE64_URL_SAFE_NO_PAD.encode(token.to_string())
}

fn decode_token(text: &str) -> Result<Continue> {
    let bad = |why: &str| {
        let message = format!("invalid continue token: continue key is not valid: {why}");
        ApiError::bad_request(message)
    };
    let json = BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| {
        let whole = text.len() - text.len() % 4;
        bad(&format!("illegal base64 data at input byte {whole}"))
    })?;
    let read: Value = serde_json::from_slice(&json).map_err(|_| {
        let first = json.first().map_or(' ', |byte| char::from(*byte));
        bad(&format!(
            "invalid character '{first}' looking for beginning of value"
        ))
    })?;
    let version = read["v"].as_str().unwrap_or_default();
    if version != TOKEN_VERSION {
        let why = format!("server does not recognize this encoded version {version}");
        return Err(bad(&why));
    }
    serde_json::from_value(read).map_err(|_| bad("it has no start"))
}

/// 410 for a compacted snapshot; the token is renewed so that the client may continue with an
/// inconsistent list.
fn expired(error: &store::Error, token: Option<&Continue>, newest: u64) -> ApiError {
    match error {
        store::Error::Compacted { .. } => match token {
            Some(token) => {
                let message = "The provided continue parameter is too old to display a consistent list result. \
                    You can start a new list without the continue parameter, or use the continue token in this \
                    response to retrieve the remainder of the results. Continuing with the provided token \
                    results in an inconsistent list.";
                let mut error = ApiError::expired(message);
                error.continue_token =
                    Some(encode_token(newest, token.start.trim_end_matches('\0')));
                error
            }
            None => ApiError::expired("The resourceVersion for the provided list is too old."),
        },
        store::Error::Future { asked, newest } => too_new(*asked, *newest),
        other => super::broken(other),
    }
}

/// 504 for a future revision.
fn too_new(asked: u64, newest: u64) -> ApiError {
    let message = format!("Timeout: Too large resource version: {asked}, current: {newest}");
    let mut error = ApiError::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message).caused_by(
        "ResourceVersionTooLarge",
        "",
        "Too large resource version",
    );
    error.retry_after = Some(1);
    error
}
