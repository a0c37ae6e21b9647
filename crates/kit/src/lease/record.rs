//! The content of a Lease.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{api::coordination::v1::LeaseSpec, apimachinery::pkg::apis::meta::v1::MicroTime};

/// The content of a Lease.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeaseRecord {
    /// The identity of the leader; none after a leader has released the Lease.
    pub holder: Option<String>,
    /// How long the Lease must be unchanged before another candidate may take it.
    pub lease_duration: Duration,
    /// When the holder acquired it, by the holder's clock. For people only.
    pub acquired: Option<Timestamp>,
    /// When it was renewed, by the holder's clock. For people, and so that every renewal is a change.
    pub renewed: Option<Timestamp>,
    /// The number of changes of the holder.
    pub transitions: i32,
}

impl LeaseRecord {
    /// The first record, held by `holder`.
    pub fn first(holder: &str, lease_duration: Duration, now: Timestamp) -> Self {
        Self {
            holder: Some(holder.to_owned()),
            lease_duration,
            acquired: Some(now),
            renewed: Some(now),
            transitions: 0,
        }
    }

    /// This record after `holder` took it over.
    pub fn taken_over(&self, holder: &str, lease_duration: Duration, now: Timestamp) -> Self {
        Self {
            transitions: self.transitions.saturating_add(1),
            ..Self::first(holder, lease_duration, now)
        }
    }

    /// This record after its holder renewed it.
    pub fn renewed(&self, lease_duration: Duration, now: Timestamp) -> Self {
        // Two renewals within the resolution of the clock must differ as well.
        let tick = SignedDuration::from_micros(1);
        let after = self
            .renewed
            .map(|last| last.checked_add(tick).unwrap_or(last));
        Self {
            lease_duration,
            renewed: Some(after.map_or(now, |after| after.max(now))),
            ..self.clone()
        }
    }

    /// This record after its holder released it: any candidate may take it at once.
    pub fn released(&self, now: Timestamp) -> Self {
        Self {
            holder: None,
            lease_duration: Duration::from_secs(1),
            ..self.renewed(Duration::from_secs(1), now)
        }
    }

    /// Whether `candidate` holds it.
    pub fn is_held_by(&self, candidate: &str) -> bool {
        self.holder.as_deref() == Some(candidate)
    }
}

impl From<&LeaseSpec> for LeaseRecord {
    fn from(spec: &LeaseSpec) -> Self {
        let seconds = spec.lease_duration_seconds.unwrap_or_default().max(0);
        let time = |time: &Option<MicroTime>| time.as_ref().map(|time| time.0);
        Self {
            holder: spec.holder_identity.clone().filter(|name| !name.is_empty()),
            lease_duration: Duration::from_secs(u64::from(seconds.unsigned_abs())),
            acquired: time(&spec.acquire_time),
            renewed: time(&spec.renew_time),
            transitions: spec.lease_transitions.unwrap_or_default(),
        }
    }
}

impl From<&LeaseRecord> for LeaseSpec {
    fn from(record: &LeaseRecord) -> Self {
        // The API counts whole seconds. Rounded up, so that no candidate takes over too early.
        let seconds = record.lease_duration.as_millis().div_ceil(1000);
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
