//! Watches: an initial state, then every change in order, then a clean end.

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

/// The minimum timeout in seconds of a watch that sets none; up to as many again are added.
const MIN_TIMEOUT_SECONDS: u64 = 1800;

/// Where a watch starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WatchStart {
    /// With everything there is, as `ADDED`.
    State,
    /// As above, followed by a bookmark that marks the end of the initial state.
    StateThenMark,
    /// With the first change from now on.
    Now,
    /// With the first change after this revision.
    After(u64),
}

impl Machine {
    pub(super) async fn watch(&self, request: &Request, served: &Arc<Served>) -> Result<Reply> {
        // Malformed parameters are reported before invalid combinations.
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
            WatchStart::After(revision) => revision,
            WatchStart::Now => self.view.revision(),
            WatchStart::State | WatchStart::StateThenMark => {
                let listed = self.snapshot(request, served, &selection).await?;
                initial = listed.objects;
                listed.revision
            }
        };
        let cursor = self.view.watch(&served.resource.bucket, revision);
        let mut feed = Feed::new(lines, selection, cursor, self.lifetime(request)?);
        feed.begin(initial, start == WatchStart::StateThenMark);
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
            _ => MIN_TIMEOUT_SECONDS + self.moment().seed % MIN_TIMEOUT_SECONDS,
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

fn start(request: &Request) -> Result<WatchStart> {
    let wants_state = request.names("sendInitialEvents");
    if wants_state && request.flag("sendInitialEvents") {
        let marks = request.flag("allowWatchBookmarks");
        return Ok(if marks {
            WatchStart::StateThenMark
        } else {
            WatchStart::State
        });
    }
    match request.revision("watch")? {
        Some(revision) => Ok(WatchStart::After(revision)),
        None if wants_state => Ok(WatchStart::Now),
        None => Ok(WatchStart::State),
    }
}
