//! What a Lease says.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{api::coordination::v1::LeaseSpec, apimachinery::pkg::apis::meta::v1::MicroTime};

/// The content of a Lease.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    /// Who leads; nobody after a leader has stopped in order.
    pub holder: Option<String>,
    /// How long it must stay unchanged before another may take it.
    pub duration: Duration,
    /// Since when the holder leads, by the holder's clock. For people only.
    pub acquired: Option<Timestamp>,
    /// When it was renewed, by the holder's clock. For people, and so that a renewal is a change.
    pub renewed: Option<Timestamp>,
    /// How often the holder has changed.
    pub transitions: i32,
}

impl Record {
    /// A first record in the name of `holder`.
    pub fn first(holder: &str, duration: Duration, now: Timestamp) -> Self {
        Self {
            holder: Some(holder.to_owned()),
            duration,
            acquired: Some(now),
            renewed: Some(now),
            transitions: 0,
        }
    }

    /// This record after `holder` took it over.
    pub fn taken(&self, holder: &str, duration: Duration, now: Timestamp) -> Self {
        Self {
            transitions: self.transitions.saturating_add(1),
            ..Self::first(holder, duration, now)
        }
    }

    /// This record after its holder renewed it.
    pub fn renewed(&self, duration: Duration, now: Timestamp) -> Self {
        // Two renewals within the resolution of the clock must differ all the same.
        let tick = SignedDuration::from_micros(1);
        let after = self
            .renewed
            .map(|last| last.checked_add(tick).unwrap_or(last));
        Self {
            duration,
            renewed: Some(after.map_or(now, |after| after.max(now))),
            ..self.clone()
        }
    }

    /// This record after its holder let go of it: anybody may take it at once.
    pub fn released(&self, now: Timestamp) -> Self {
        Self {
            holder: None,
            duration: Duration::from_secs(1),
            ..self.renewed(Duration::from_secs(1), now)
        }
    }

    /// Whether `somebody` holds it.
    pub fn is_held_by(&self, somebody: &str) -> bool {
        self.holder.as_deref() == Some(somebody)
    }
}

impl From<&LeaseSpec> for Record {
    fn from(spec: &LeaseSpec) -> Self {
        let seconds = spec.lease_duration_seconds.unwrap_or_default().max(0);
        let time = |time: &Option<MicroTime>| time.as_ref().map(|time| time.0);
        Self {
            holder: spec.holder_identity.clone().filter(|name| !name.is_empty()),
            duration: Duration::from_secs(u64::from(seconds.unsigned_abs())),
            acquired: time(&spec.acquire_time),
            renewed: time(&spec.renew_time),
            transitions: spec.lease_transitions.unwrap_or_default(),
        }
    }
}

impl From<&Record> for LeaseSpec {
    fn from(record: &Record) -> Self {
        // The API counts whole seconds. Nobody may take over earlier for having rounded.
        let seconds = record.duration.as_millis().div_ceil(1000);
        Self {
            holder_identity: Some(record.holder.clone().unwrap_or_default()),
            lease_duration_seconds: Some(i32::try_from(seconds).unwrap_or(i32::MAX).max(1)),
            acquire_time: record.acquired.map(MicroTime),
            renew_time: record.renewed.map(MicroTime),
            lease_transitions: Some(record.transitions),
            ..Self::default()
        }
    }
}
