//! Watches: a state to begin with, then every change in order, then a clean end.

mod blank;
mod definition;
mod feed;
mod lines;
mod schedule;

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use http::StatusCode;

use super::{
    Machine, Reply, ReplyBody, Request, Served,
    reply::{JSON, include_object},
    request::option_error,
};
use crate::{
    rest::selection::Selection,
    status::{Problems, Result},
};

use feed::Feed;
use lines::Lines;

/// A watch that names no timeout ends after this many seconds, plus up to as many again.
const SHORTEST: u64 = 1800;

/// How a watch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// With everything there is, as `ADDED`.
    State,
    /// As above, and a bookmark that says that it was everything.
    StateThenMark,
    /// With the first change from now on.
    Now,
    /// With the first change after this revision.
    After(u64),
}

impl Machine {
    pub(super) async fn watch(&self, request: &Request, served: &Arc<Served>) -> Result<Reply> {
        // What cannot be read is said before what may not be asked.
        request.number("limit")?;
        request.number("timeoutSeconds")?;
        Selection::check_form(request)?;
        check_options(request)?;
        let selection = Selection::of(request, served)?;
        let start = start(request)?;
        let lines = Lines::new(
            self.clone(),
            served.clone(),
            request,
            include_object(request)?,
        );
        let mut initial = Vec::new();
        let revision = match start {
            Start::After(revision) => revision,
            Start::Now => self.view.revision(),
            Start::State | Start::StateThenMark => {
                let listed = self.snapshot(request, served, &selection).await?;
                initial = listed.objects;
                listed.revision
            }
        };
        let cursor = self.view.watch(&served.resource.bucket, revision);
        let mut feed = Feed::new(lines, selection, cursor, self.lifetime(request)?);
        feed.begin(initial, start == Start::StateThenMark);
        if request.flag("allowWatchBookmarks") {
            feed.send_bookmarks();
        }
        Ok(Reply {
            status: StatusCode::OK,
            content_type: JSON,
            warnings: Vec::new(),
            body: ReplyBody::Stream(feed.into_stream().boxed()),
        })
    }

    fn lifetime(&self, request: &Request) -> Result<Duration> {
        let asked = request.number("timeoutSeconds")?.unwrap_or(0);
        let seconds = match u64::try_from(asked) {
            Ok(seconds) if seconds > 0 => seconds,
            _ => SHORTEST + self.moment().seed % SHORTEST,
        };
        Ok(Duration::from_secs(seconds))
    }
}

fn check_options(request: &Request) -> Result<()> {
    let wants_state = request.names("sendInitialEvents");
    let matching = request.parameter("resourceVersionMatch");
    let mut problems = Problems::new();
    if wants_state && matching != Some("NotOlderThan") {
        let text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        problems.forbidden("resourceVersionMatch", text);
    } else if !wants_state && matching.is_some() {
        let text =
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        problems.forbidden("resourceVersionMatch", text);
    }
    if let Some(other) = matching.filter(|word| *word != "NotOlderThan") {
        problems.not_supported("resourceVersionMatch", other, &["NotOlderThan"]);
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(option_error("watch", &problems))
}

fn start(request: &Request) -> Result<Start> {
    let wants_state = request.names("sendInitialEvents");
    if wants_state && request.flag("sendInitialEvents") {
        let marks = request.flag("allowWatchBookmarks");
        return Ok(if marks {
            Start::StateThenMark
        } else {
            Start::State
        });
    }
    match request.revision("watch")? {
        Some(revision) => Ok(Start::After(revision)),
        None if wants_state => Ok(Start::Now),
        None => Ok(Start::State),
    }
}
