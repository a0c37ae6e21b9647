//! A watch whose events meet faults.

use std::{collections::VecDeque, sync::Arc};

use bytes::{Bytes, BytesMut};
use futures::stream;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use serde::Deserialize;
use tower::BoxError;

use super::{Call, Connection, Restart, ServerResponse};
use crate::{
    plan::{Action, Point},
    run_state::RunState,
};

type Inner = UnsyncBoxBody<Bytes, BoxError>;

/// What a watch delivered, before any fault struck.
#[derive(Debug)]
pub(crate) struct WatchRecord {
    /// Group and kind, as in the history.
    pub(crate) resource: String,
    /// Empty for all namespaces.
    pub(crate) namespace: String,
    /// The version it resumed from; none for a watch with a selector.
    pub(crate) after: Option<u64>,
    /// The versions it delivered.
    pub(crate) delivered: Vec<u64>,
    /// Whether it is still open: then it has delivered everything.
    pub(crate) open: bool,
}

/// The same response, with faults in its stream.
pub(super) fn faulty(
    answer: ServerResponse,
    call: Call,
    connection: Arc<Connection>,
    run_state: Arc<RunState>,
) -> ServerResponse {
    let mut streams = run_state.watches.lock();
    let number = streams.len();
    streams.push(WatchRecord {
        resource: format!("{}/{}", call.group, call.kind),
        namespace: call.namespace.clone(),
        after: call.after,
        delivered: Vec::new(),
        open: true,
    });
    drop(streams);
    answer.map(|body| {
        let watch = FaultyWatch {
            body,
            rest: BytesMut::new(),
            ready: VecDeque::new(),
            call,
            connection,
            run_state,
            number,
            ended: false,
        };
        StreamBody::new(frames(watch)).boxed_unsync()
    })
}

struct FaultyWatch {
    body: Inner,
    /// The start of an incomplete line.
    rest: BytesMut,
    /// Lines to deliver.
    ready: VecDeque<Bytes>,
    call: Call,
    connection: Arc<Connection>,
    run_state: Arc<RunState>,
    /// Its index among all watches.
    number: usize,
    ended: bool,
}

fn frames(
    watch: FaultyWatch,
) -> impl futures::Stream<Item = Result<Frame<Bytes>, BoxError>> + Send {
    stream::unfold(watch, |mut watch| async move {
        loop {
            watch.connection.wait_until_runnable().await;
            if let Some(line) = watch.ready.pop_front() {
                return Some((Ok(Frame::data(line)), watch));
            }
            if watch.ended {
                return None;
            }
            match watch.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        watch.take(&data).await;
                    }
                }
                Some(Err(error)) => return Some((Err(error), watch)),
                None => return None,
            }
        }
    })
}

impl FaultyWatch {
    /// Splits data from the server into lines.
    async fn take(&mut self, data: &[u8]) {
        self.rest.extend_from_slice(data);
        while let Some(end) = self.rest.iter().position(|&byte| byte == b'\n') {
            let line = self.rest.split_to(end + 1).freeze();
            self.deliver(line).await;
            if self.ended {
                return;
            }
        }
    }

    async fn deliver(&mut self, line: Bytes) {
        let Some(event_line) = WatchEventLine::of(&line) else {
            self.ready.push_back(line);
            return;
        };
        let version = event_line.object.metadata.resource_version.parse();
        let version = version.unwrap_or_default();
        self.run_state.watches.lock()[self.number]
            .delivered
            .push(version);
        let event = Call {
            namespace: event_line.object.metadata.namespace.clone(),
            name: event_line.object.metadata.name.clone(),
            ..self.call.clone()
        };
        let actor = self.connection.actor();
        let mut copies = 1;
        for action in self.run_state.strike(Point::WatchEvent, actor, &event) {
            match action {
                Action::Crash => self.connection.crash(Restart::default()),
                Action::Delay(time) => self.run_state.hold(time).await,
                Action::Pause(time) => self.connection.pause(time).await,
                Action::Lag(events, kinds, time) => self.connection.lag(events, kinds, time),
                Action::Reset => self.ended = true,
                Action::Gone => self.end(Connection::expire_watch),
                Action::Merge(time) => {
                    self.end(|connection, kind| connection.block_watch(kind, time));
                }
                Action::Twice => copies = 2,
                // The parser rejects plans with these actions here.
                Action::CrashStale(..)
                | Action::Fail(_)
                | Action::Conflict(_)
                | Action::Lose
                | Action::Truncate(_)
                | Action::Corrupt(_) => {}
            }
        }
        if self.ended {
            return;
        }
        self.run_state
            .record_event(&self.connection, &event, &event_line.kind);
        for _ in 0..copies {
            self.ready.push_back(line.clone());
        }
    }

    fn end(&mut self, leave: impl Fn(&Connection, &str)) {
        leave(&self.connection, &self.call.kind);
        self.ended = true;
    }
}

/// The client closed the watch, or it broke.
impl Drop for FaultyWatch {
    fn drop(&mut self) {
        self.run_state.watches.lock()[self.number].open = false;
    }
}

/// The part of a watch event that faults are matched with.
#[derive(Deserialize)]
struct WatchEventLine {
    #[serde(rename = "type")]
    kind: String,
    object: EventObject,
}

#[derive(Deserialize)]
struct EventObject {
    #[serde(default)]
    metadata: EventMetadata,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct EventMetadata {
    namespace: String,
    name: String,
    resource_version: String,
}

impl WatchEventLine {
    /// The event of a line; none for a bookmark or an error.
    fn of(line: &[u8]) -> Option<Self> {
        let event_line: Self = serde_json::from_slice(line).ok()?;
        matches!(event_line.kind.as_str(), "ADDED" | "MODIFIED" | "DELETED").then_some(event_line)
    }
}
