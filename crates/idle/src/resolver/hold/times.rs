//! Measures where the time of a held request went.

use neap_kit::clock::Uptime;

use crate::api::Breakdown;

/// The time of each step of a held request, as far as it has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HoldTimes {
    /// The request arrived.
    pub arrived: Uptime,
    /// The resolver requested a wake from the operator.
    pub requested: Option<Uptime>,
    /// The operator had written the replicas.
    pub scaled: Option<Uptime>,
    /// A pod was scheduled, as far as endpoints show.
    pub scheduled: Option<Uptime>,
    /// The request was released to a ready pod.
    pub ready: Option<Uptime>,
    /// The pod accepted the connection.
    pub connected: Option<Uptime>,
    /// The first byte of the pod's answer arrived.
    pub first_byte: Option<Uptime>,
}

impl Breakdown {
    /// The parts by name, in order.
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

    /// A sentence that names the longest part.
    pub fn longest_part(&self) -> String {
        let parts = self.parts();
        let all: i64 = parts.iter().map(|(_, took)| took).sum();
        // The first of equals: the later ones waited for it.
        let longest = parts.iter().rev().max_by_key(|(_, took)| took);
        let (part, took) = longest.copied().unwrap_or_default();
        let what = match part {
            "queue" => "requesting the wake",
            "scale" => "waiting for the operator to write replicas",
            "schedule" => "waiting for a pod to be scheduled",
            "ready" => "waiting for a pod to be ready",
            "connect" => "connecting to a pod",
            _ => "waiting for the first byte of a pod",
        };
        let seconds = |milliseconds: i64| milliseconds as f64 / 1000.0;
        format!(
            "{:.1} of {:.1} s were spent {what}",
            seconds(took),
            seconds(all)
        )
    }
}

impl HoldTimes {
    /// A request that arrived at this time.
    pub fn arrived(arrived: Uptime) -> Self {
        Self {
            arrived,
            ..Self::default()
        }
    }

    /// The duration of each part; the part that has not ended counts until `now`. A part that did not
    /// happen took no time, and a part that began before this request counts from its arrival.
    pub fn breakdown(&self, now: Uptime) -> Breakdown {
        let mut from = self.arrived;
        let steps = [
            self.requested,
            self.scaled,
            self.scheduled,
            self.ready,
            self.connected,
            self.first_byte,
        ];
        let last = steps.iter().rposition(Option::is_some);
        let mut parts = [0; 6];
        for (index, (part, step)) in parts.iter_mut().zip(steps).enumerate() {
            let current = last.map_or(index == 0, |last| index == last + 1);
            let to = if current { Some(now) } else { step };
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
