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
    /// A pod was ready to take it.
    pub ready: Option<Uptime>,
    /// A pod took the connection.
    pub connected: Option<Uptime>,
    /// The pod began to answer.
    pub first_byte: Option<Uptime>,
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
            self.ready,
            self.connected,
            self.first_byte,
        ];
        let last = steps.iter().rposition(Option::is_some);
        let mut parts = [0; 5];
        for (index, (part, step)) in parts.iter_mut().zip(steps).enumerate() {
            let under_way = last.map_or(index == 0, |last| index == last + 1);
            let to = if under_way { Some(now) } else { step };
            if let Some(to) = to {
                *part = to.saturating_sub(from).as_millis() as i64;
                from = from.max(to);
            }
        }
        let [queue, scale, ready, connect, first_byte] = parts;
        Breakdown {
            queue,
            scale,
            ready,
            connect,
            first_byte,
            ..Breakdown::default()
        }
    }
}
