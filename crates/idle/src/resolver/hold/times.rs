//! Where the time of one request went.

use neap_kit::clock::Uptime;

use crate::api::Breakdown;

/// When each thing happened, as far as it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times {
    /// It came in.
    pub arrived: Uptime,
    /// The operator was asked for a wake.
    pub asked: Option<Uptime>,
    /// The operator had written the replicas.
    pub scaled: Option<Uptime>,
    /// A pod had a place to run, as far as endpoints tell.
    pub scheduled: Option<Uptime>,
    /// A pod was ready to take it.
    pub ready: Option<Uptime>,
    /// A pod took the connection.
    pub connected: Option<Uptime>,
    /// The pod began to answer.
    pub first_byte: Option<Uptime>,
}

impl Breakdown {
    /// Every part by its name, in the order in which they happen.
    pub fn parts(&self) -> [(&'static str, i64); 6] {
        [
            ("queue", self.queue),
            ("scale", self.scale),
            ("schedule", self.schedule),
            ("ready", self.ready),
            ("connect", self.connect),
            ("first_byte", self.first_byte),
        ]
    }

    /// Where most of the time went, for people, and how much of how much.
    pub fn most(&self) -> String {
        let parts = self.parts();
        let all: i64 = parts.iter().map(|(_, took)| took).sum();
        // The first of equals: what came after it waited for it.
        let longest = parts.iter().rev().max_by_key(|(_, took)| took);
        let (part, took) = longest.copied().unwrap_or_default();
        let what = match part {
            "queue" => "until the operator was asked",
            "scale" => "until the operator had written replicas",
            "schedule" => "until a pod had a place to run",
            "ready" => "until a pod was ready",
            "connect" => "until a pod took the connection",
            _ => "until a pod began to answer",
        };
        let seconds = |milliseconds: i64| milliseconds as f64 / 1000.0;
        format!(
            "{:.1} of {:.1} s went by {what}",
            seconds(took),
            seconds(all)
        )
    }
}

impl Times {
    /// Nothing happened yet but this.
    pub fn arrived(arrived: Uptime) -> Self {
        Self {
            arrived,
            ..Self::default()
        }
    }

    /// How long each part took, until `now` for the one that has not ended. A part that did not
    /// happen took no time; one that others began before this request came counts from its arrival.
    pub fn breakdown(&self, now: Uptime) -> Breakdown {
        let mut from = self.arrived;
        let steps = [
            self.asked,
            self.scaled,
            self.scheduled,
            self.ready,
            self.connected,
            self.first_byte,
        ];
        let last = steps.iter().rposition(Option::is_some);
        let mut parts = [0; 6];
        for (index, (part, step)) in parts.iter_mut().zip(steps).enumerate() {
            let under_way = last.map_or(index == 0, |last| index == last + 1);
            let to = if under_way { Some(now) } else { step };
            if let Some(to) = to {
                *part = to.saturating_sub(from).as_millis() as i64;
                from = from.max(to);
            }
        }
        let [queue, scale, schedule, ready, connect, first_byte] = parts;
        Breakdown {
            queue,
            scale,
            schedule,
            ready,
            connect,
            first_byte,
        }
    }
}
