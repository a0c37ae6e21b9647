//! A watch whose events meet faults.

use std::{collections::VecDeque, sync::Arc};

use bytes::{Bytes, BytesMut};
use futures::stream;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use serde::Deserialize;
use tower::BoxError;

use super::{Answer, Call, Line, Restart};
use crate::{
    plan::{Action, Point},
    scene::Scene,
};

type Inner = UnsyncBoxBody<Bytes, BoxError>;

/// What a watch told, before any fault struck.
#[derive(Debug)]
pub(crate) struct Stream {
    /// Group and kind, as the history has them.
    pub(crate) resource: String,
    /// Empty for all.
    pub(crate) namespace: String,
    /// From where it went on; nothing if it chose among objects.
    pub(crate) after: Option<u64>,
    /// The versions it told of.
    pub(crate) told: Vec<u64>,
    /// Whether it still tells: then it has told everything.
    pub(crate) open: bool,
}

/// The same answer, in whose stream faults strike.
pub(super) fn faulty(answer: Answer, call: Call, line: Arc<Line>, scene: Arc<Scene>) -> Answer {
    let mut streams = scene.streams.lock();
    let number = streams.len();
    streams.push(Stream {
        resource: format!("{}/{}", call.group, call.kind),
        namespace: call.namespace.clone(),
        after: call.after,
        told: Vec::new(),
        open: true,
    });
    drop(streams);
    answer.map(|body| {
        let watch = Watch {
            body,
            rest: BytesMut::new(),
            ready: VecDeque::new(),
            call,
            line,
            scene,
            number,
            ended: false,
        };
        StreamBody::new(frames(watch)).boxed_unsync()
    })
}

struct Watch {
    body: Inner,
    /// The beginning of a line whose end has not come yet.
    rest: BytesMut,
    /// Lines that may be told.
    ready: VecDeque<Bytes>,
    call: Call,
    line: Arc<Line>,
    scene: Arc<Scene>,
    /// Its place among all streams.
    number: usize,
    ended: bool,
}

fn frames(watch: Watch) -> impl futures::Stream<Item = Result<Frame<Bytes>, BoxError>> + Send {
    stream::unfold(watch, |mut watch| async move {
        loop {
            watch.line.go_on().await;
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

impl Watch {
    /// Takes in what the server said, line by line.
    async fn take(&mut self, data: &[u8]) {
        self.rest.extend_from_slice(data);
        while let Some(end) = self.rest.iter().position(|&byte| byte == b'\n') {
            let line = self.rest.split_to(end + 1).freeze();
            self.tell(line).await;
            if self.ended {
                return;
            }
        }
    }

    async fn tell(&mut self, line: Bytes) {
        let Some(seen) = Seen::of(&line) else {
            self.ready.push_back(line);
            return;
        };
        let version = seen.object.metadata.resource_version.parse();
        let version = version.unwrap_or_default();
        self.scene.streams.lock()[self.number].told.push(version);
        let event = Call {
            namespace: seen.object.metadata.namespace.clone(),
            name: seen.object.metadata.name.clone(),
            ..self.call.clone()
        };
        let actor = self.line.actor();
        let mut copies = 1;
        for action in self.scene.strike(Point::WatchEvent, actor, &event) {
            match action {
                Action::Crash => self.line.crash(Restart::default()),
                Action::Delay(time) => self.scene.hold(time).await,
                Action::Pause(time) => self.line.pause(time).await,
                Action::Lag(events, kinds, time) => self.line.lag(events, kinds, time),
                Action::Reset => self.ended = true,
                Action::Gone => self.end(Line::lose),
                Action::Merge(time) => self.end(|line, kind| line.shut(kind, time)),
                Action::Twice => copies = 2,
                // A plan that asks for these here was refused.
                Action::CrashStale(..) | Action::Fail(_) | Action::Conflict(_) => {}
            }
        }
        if self.ended {
            return;
        }
        self.scene.told(&self.line, &event, &seen.kind);
        for _ in 0..copies {
            self.ready.push_back(line.clone());
        }
    }

    fn end(&mut self, leave: impl Fn(&Line, &str)) {
        leave(&self.line, &self.call.kind);
        self.ended = true;
    }
}

/// Whoever watched has turned away, or the stream has broken off.
impl Drop for Watch {
    fn drop(&mut self) {
        self.scene.streams.lock()[self.number].open = false;
    }
}

/// What an event says of itself.
#[derive(Deserialize)]
struct Seen {
    #[serde(rename = "type")]
    kind: String,
    object: Object,
}

#[derive(Deserialize)]
struct Object {
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    namespace: String,
    name: String,
    resource_version: String,
}

impl Seen {
    /// The event of a line; nothing if it tells of no change.
    fn of(line: &[u8]) -> Option<Self> {
        let seen: Self = serde_json::from_slice(line).ok()?;
        matches!(seen.kind.as_str(), "ADDED" | "MODIFIED" | "DELETED").then_some(seen)
    }
}
