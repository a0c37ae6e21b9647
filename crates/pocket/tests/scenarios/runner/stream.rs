//! A watch stream, read line by line.

use std::{collections::VecDeque, fmt, time::Duration};

use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    Failure,
    exchange::fill,
    observe::observe_stream_line,
    pattern::Match,
    scenario::Request,
    server::{Server, read, wrong},
    variables::Variables,
};

/// How long the end of a scenario waits for the remaining lines of a stream.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);

/// An open stream.
pub(crate) struct Stream {
    name: String,
    body: Body,
    partial: Vec<u8>,
    lines: VecDeque<String>,
    ended: bool,
}

/// The next item of a stream.
pub(crate) enum Next {
    Event(StreamEvent),
    End,
}

/// One line of a stream.
pub(crate) struct StreamEvent {
    stream: String,
    kind: String,
    object: Value,
}

impl Stream {
    pub(crate) async fn open(
        name: &str,
        server: &Server,
        request: &Request,
        variables: &Variables,
    ) -> Result<Self, Failure> {
        let response = server.send(fill(request, variables)?).await?;
        let status = response.status();
        if !status.is_success() {
            let body = read(response.into_body()).await?;
            let text = String::from_utf8_lossy(&body);
            return Err(Failure::new(format!(
                "the watch was refused with {status}: {text}"
            )));
        }
        Ok(Self {
            name: name.into(),
            body: response.into_body(),
            partial: Vec::new(),
            lines: VecDeque::new(),
            ended: false,
        })
    }

    /// The next event. A bookmark may come at any time, so one that was not requested is skipped.
    pub(crate) async fn next(&mut self, bookmarks: bool) -> Result<Next, Failure> {
        while let Some(line) = self.line().await? {
            let event = StreamEvent::read(&self.name, &line)?;
            if bookmarks || event.kind != "BOOKMARK" {
                return Ok(Next::Event(event));
            }
        }
        Ok(Next::End)
    }

    /// Succeeds if no line comes for this long.
    pub(crate) async fn quiet(&mut self, long: Duration) -> Result<(), Failure> {
        match timeout(long, self.next(false)).await {
            Err(_) => Ok(()),
            Ok(next) => Err(Failure::new(format!(
                "{}: expected silence, got {}",
                self.name, next?
            ))),
        }
    }

    /// Reads the remaining lines, so that every line is observed.
    pub(crate) async fn drain(&mut self) -> Result<Vec<StreamEvent>, Failure> {
        let mut rest = Vec::new();
        while let Ok(next) = timeout(DRAIN_TIMEOUT, self.next(false)).await {
            match next? {
                Next::Event(event) => rest.push(event),
                Next::End => break,
            }
        }
        Ok(rest)
    }

    async fn line(&mut self) -> Result<Option<String>, Failure> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                observe_stream_line(&self.name, &line)?;
                return Ok(Some(line));
            }
            if self.ended {
                return Ok(None);
            }
            match self.body.frame().await.transpose().map_err(wrong)? {
                Some(frame) => self.take(frame.data_ref().map_or(&[][..], |data| data)),
                None if self.partial.is_empty() => self.ended = true,
                None => return Err(Failure::new(format!("{} ended within a line", self.name))),
            }
        }
    }

    fn take(&mut self, data: &[u8]) {
        for &byte in data {
            if byte == b'\n' {
                let line = std::mem::take(&mut self.partial);
                self.lines
                    .push_back(String::from_utf8_lossy(&line).into_owned());
            } else {
                self.partial.push(byte);
            }
        }
    }
}

impl StreamEvent {
    fn read(stream: &str, line: &str) -> Result<Self, Failure> {
        let mut event: Value = serde_json::from_str(line).map_err(wrong)?;
        Ok(Self {
            stream: stream.into(),
            kind: event["type"].as_str().unwrap_or_default().into(),
            object: event["object"].take(),
        })
    }

    /// The entry for a recording.
    pub(crate) fn entry(&self) -> Value {
        json!({"stream": self.stream, "type": self.kind, "object": self.object})
    }

    /// The variables after this event, and the differences.
    pub(crate) fn check(
        &self,
        kind: &str,
        pattern: &Value,
        variables: &Variables,
    ) -> (Variables, Result<(), Failure>) {
        let mut matching = Match::new(variables.clone());
        matching.value("", pattern, &self.object);
        let mut differences = matching.differences;
        if self.kind != kind {
            differences.insert(0, format!("type: expected {kind}, got {}", self.kind));
        }
        if differences.is_empty() {
            return (matching.variables, Ok(()));
        }
        let failure = Failure::new(format!(
            "{}: another event than expected\n  {}\n  it was {} {}",
            self.stream,
            differences.join("\n  "),
            self.kind,
            self.object
        ));
        (matching.variables, Err(failure))
    }
}

impl Next {
    /// The entry for a recording.
    pub(crate) fn entry(&self, stream: &str) -> Value {
        match self {
            Self::Event(event) => event.entry(),
            Self::End => json!({"stream": stream, "type": "end"}),
        }
    }
}

impl fmt::Display for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(event) => write!(f, "{} {}", event.kind, event.object),
            Self::End => f.write_str("the end of the stream"),
        }
    }
}
