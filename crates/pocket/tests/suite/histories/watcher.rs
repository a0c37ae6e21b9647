//! A client that watches, loses its stream, and resumes.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use http_body_util::BodyExt;
use neap_oracles::{ObservedBody, ObservedService};
use neap_pocket::wire::{Body, Service};
use serde_json::Value;

use super::{
    client::{COLORS, NAMESPACES, open},
    draw::Draw,
    kinds::Kind,
};

pub(crate) struct Watcher {
    pub(crate) service: ObservedService<Service>,
    pub(crate) draw: Draw,
    /// How long a stream is read, at most.
    pub(crate) patience: Duration,
    pub(crate) expired: usize,
    pub(crate) resumed: usize,
    pub(crate) marks: usize,
}

impl Watcher {
    pub(crate) fn new(service: ObservedService<Service>, seed: u64) -> Self {
        Self {
            service,
            draw: Draw::new(seed),
            patience: Duration::from_millis(1500),
            expired: 0,
            resumed: 0,
            marks: 0,
        }
    }

    /// Watches until told to stop, then reads a last stream until nothing more comes, and returns
    /// it still open.
    pub(crate) async fn run(
        &mut self,
        stop: &AtomicBool,
        silence: Duration,
    ) -> Option<ObservedBody<Body>> {
        let mut place = None;
        let mut base = self.collection();
        loop {
            let last = stop.load(Ordering::SeqCst);
            let uri = self.uri(&base, place, last);
            let answer = open(&self.service, &uri).await;
            if !answer.status().is_success() {
                continue;
            }
            let mut stream = answer.into_body();
            let started = tokio::time::Instant::now();
            let patience = self.patience.mul_f64(self.draw.below(100) as f64 / 100.0);
            let ended = loop {
                let wait = if last {
                    silence
                } else {
                    patience.saturating_sub(started.elapsed())
                };
                match tokio::time::timeout(wait, stream.frame()).await {
                    Ok(Some(frame)) => {
                        let lines = frame.unwrap().into_data().unwrap();
                        place = self.place(&lines, place);
                    }
                    Ok(None) => break true,
                    Err(_) => break false,
                }
            };
            if last && !ended {
                return Some(stream);
            }
            self.resumed += usize::from(place.is_some());
            if self.draw.once_in(4) && !last {
                // Disconnected for long enough that the history may have been compacted.
                tokio::time::sleep(self.patience / 5).await;
            }
            if self.draw.once_in(6) {
                place = None;
                base = self.collection();
            }
        }
    }

    /// The revision to resume from after these lines; `None` if it has expired.
    fn place(&mut self, lines: &[u8], mut place: Option<u64>) -> Option<u64> {
        for line in lines.split(|&b| b == b'\n').filter(|line| !line.is_empty()) {
            let line: Value = serde_json::from_slice(line).unwrap();
            let revision = line["object"]["metadata"]["resourceVersion"].as_str();
            match line["type"].as_str() {
                Some("ERROR") => {
                    self.expired += 1;
                    return None;
                }
                Some("BOOKMARK") => self.marks += 1,
                _ => {}
            }
            let revision: u64 = revision.unwrap().parse().unwrap();
            // The objects of an initial state are in the order of their names.
            place = Some(place.unwrap_or(0).max(revision));
        }
        place
    }

    fn collection(&mut self) -> String {
        let namespace = self.draw.one_of(&["", NAMESPACES[0], NAMESPACES[1]]);
        let kind = self.draw.one_of(&Kind::ALL);
        let selector = match self.draw.below(4) {
            0 => format!("&labelSelector=color%3D{}", self.draw.one_of(&COLORS)),
            1 => format!("&fieldSelector=metadata.name%3Dx{}", self.draw.below(4)),
            2 => "&labelSelector=color+notin+(red,blue)".into(),
            _ => String::new(),
        };
        format!("{}?watch=true{selector}", kind.collection(namespace))
    }

    fn uri(&mut self, base: &str, place: Option<u64>, last: bool) -> String {
        let mut uri = base.to_owned();
        if self.draw.once_in(2) {
            uri += "&allowWatchBookmarks=true";
        }
        if !last {
            uri = format!("{uri}&timeoutSeconds={}", 1 + self.draw.below(2));
        }
        match place {
            Some(place) => uri = format!("{uri}&resourceVersion={place}"),
            None if self.draw.once_in(2) => {
                uri += "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
            }
            None => {}
        }
        uri
    }
}
