//! Executes what [`decide`] returns, and sets the leadership of the process.

use std::pin::pin;

use futures::{Stream, StreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client, ResourceExt,
    api::{ObjectMeta, PostParams},
    runtime::{WatchStreamExt, watcher},
};
use tokio_util::sync::CancellationToken;

use super::{
    Decision, Leadership, LeaseRecord, LeaseTimings, ObservedLease, Term, decide,
    leadership::LeadershipSetter,
};
use crate::{
    backoff::WatchBackoff,
    clock::{Clock, Uptime},
    planted,
    telemetry::{LeadershipChanged, Telemetry},
    why::{Code, Coded},
};

/// An election, and the candidate.
#[derive(Debug, Clone)]
pub struct ElectionOptions {
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// The identity of the candidate: unique among all processes, including earlier runs of this one.
    pub identity: String,
    /// The timings of the election.
    pub timings: LeaseTimings,
}

/// Why an election with these options is not possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A leader could still write when another takes over, or would lose the Lease between two
    /// renewals.
    #[error("the lease duration ({lease_duration:?}) must be longer than the renew deadline ({renew_deadline:?}), and that longer than the retry period ({retry_period:?})", lease_duration = .0.lease_duration, renew_deadline = .0.renew_deadline, retry_period = .0.retry_period)]
    InvalidTimings(LeaseTimings),
    /// The Lease could not name the leader.
    #[error("a candidate needs an identity")]
    MissingIdentity,
}

/// A candidate of an election.
pub struct Elector {
    leases: Api<Lease>,
    options: ElectionOptions,
    clock: Clock,
    setter: LeadershipSetter,
    telemetry: Telemetry,
    observed: Option<ObservedLease>,
    /// The content of a Lease that was deleted: the count of terms continues from there.
    deleted: Option<LeaseRecord>,
    /// The term, and when the last successful renewal was started; none while others lead.
    held: Option<(Term, Uptime)>,
    /// After a failure, no request is sent before this.
    not_before: Uptime,
}

impl Elector {
    /// A candidate, and the leadership that the other components check. `client` should not retry by
    /// itself: a late response is of no use here.
    pub fn new(
        client: Client,
        options: ElectionOptions,
        clock: Clock,
    ) -> Result<(Self, Leadership), Error> {
        let LeaseTimings {
            lease_duration,
            renew_deadline,
            retry_period,
        } = options.timings;
        if !(lease_duration > renew_deadline
            && renew_deadline > retry_period
            && !retry_period.is_zero())
        {
            return Err(Error::InvalidTimings(options.timings));
        }
        if options.identity.is_empty() {
            return Err(Error::MissingIdentity);
        }
        let (setter, leadership) = Leadership::new(clock);
        let elector = Self {
            leases: Api::namespaced(client, &options.namespace),
            options,
            clock,
            setter,
            telemetry: Telemetry::default(),
            observed: None,
            deleted: None,
            held: None,
            not_before: Uptime::ZERO,
        };
        Ok((elector, leadership))
    }

    /// The same candidate, which reports changes of leadership to `telemetry`.
    pub fn with_telemetry(mut self, telemetry: Telemetry) -> Self {
        self.telemetry = telemetry;
        self
    }

    /// Takes part in the election until `stop`, then releases the Lease so that another candidate may
    /// lead at once.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut changes = pin!(changes(&self.leases, &self.options.name));
        self.read().await;
        while !stop.is_cancelled() {
            let wait_until = self.step().await;
            tokio::select! {
                () = stop.cancelled() => break,
                () = self.clock.sleep_until(wait_until) => {}
                event = changes.next() => self.on_watch_event(event.flatten()).await,
            }
        }
        self.release().await;
    }

    /// Does what [`decide`] returns. Returns the moment of the next step.
    async fn step(&mut self) -> Uptime {
        self.step_down_if_late();
        let now = self.clock.uptime();
        if now < self.not_before {
            return self.not_before;
        }
        let ElectionOptions {
            identity, timings, ..
        } = &self.options;
        let renewed = self.held.map(|(_, renewed)| renewed);
        let wall = self.clock.now();
        let last = self.observed.as_ref().map(|observed| &observed.record);
        let record = match (
            decide(identity, timings, self.observed.as_ref(), renewed, now),
            last,
        ) {
            (Decision::Wait(until), _) => return until,
            (Decision::Renew, Some(last)) => last.renewed(timings.lease_duration, wall),
            (_, Some(last)) => last.taken_over(identity, timings.lease_duration, wall),
            (_, None) => match &self.deleted {
                Some(deleted) => deleted.taken_over(identity, timings.lease_duration, wall),
                None => LeaseRecord::first(identity, timings.lease_duration, wall),
            },
        };
        self.write(record, now).await;
        self.clock.uptime().max(self.not_before)
    }

    /// Writes the record in the version that was observed. If that fails, the Lease is read again.
    async fn write(&mut self, record: LeaseRecord, begun: Uptime) {
        let term = Term(record.transitions);
        match self
            .clock
            .within(self.options.timings.retry_period, self.send(&record))
            .await
        {
            Some(Ok(lease)) => {
                self.observe(&lease);
                self.held = Some((term, begun));
                self.lead(term, begun);
            }
            Some(Err(error)) => {
                // A conflict means that another candidate was faster, as is usual in an election.
                if !is_conflict(&error) {
                    tracing::warn!(lease = self.options.name, %error, "the lease could not be written");
                    self.back_off();
                }
                self.read().await;
            }
            None => {
                tracing::warn!(
                    lease = self.options.name,
                    "no response to a write of the lease"
                );
                self.read().await;
            }
        }
    }

    async fn send(&self, record: &LeaseRecord) -> Result<Lease, kube::Error> {
        let name = &self.options.name;
        let mut lease = Lease {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                ..ObjectMeta::default()
            },
            spec: Some(record.into()),
        };
        let parameters = PostParams::default();
        match &self.observed {
            None => self.leases.create(&parameters, &lease).await,
            Some(observed) => {
                lease.metadata.resource_version = Some(observed.version.clone());
                self.leases.replace(name, &parameters, &lease).await
            }
        }
    }

    /// Reads the Lease. If that fails, the last observation stays: a write in that version is refused
    /// if the Lease has changed.
    async fn read(&mut self) {
        let read = self.leases.get_opt(&self.options.name);
        match self
            .clock
            .within(self.options.timings.retry_period, read)
            .await
        {
            Some(Ok(Some(lease))) => self.observe(&lease),
            Some(Ok(None)) => self.lease_deleted(),
            Some(Err(error)) => {
                tracing::warn!(lease = self.options.name, %error, "the lease could not be read");
                self.back_off();
            }
            None => tracing::warn!(
                lease = self.options.name,
                "no response to a read of the lease"
            ),
        }
    }

    /// Sends no request for a retry period after a failure.
    fn back_off(&mut self) {
        let later = self.clock.uptime() + self.options.timings.retry_period;
        self.not_before = self.not_before.max(later);
    }

    /// The Lease was deleted. Its holder may not know yet, and may write until it would have expired.
    fn lease_deleted(&mut self) {
        if let Some(observed) = self.observed.take() {
            let holder = observed.record.holder.as_deref();
            if holder.is_some_and(|holder| holder != self.options.identity) {
                self.not_before = self.not_before.max(observed.expires());
            }
            self.deleted = Some(observed.record).filter(|_| !planted!(TermsAnew));
        }
        self.held = None;
        self.follow(None);
    }

    /// A watch may be behind, so a leader reads the Lease before it steps down.
    async fn on_watch_event(&mut self, lease: Option<Lease>) {
        let is_ours = |lease: &Lease| record(lease).is_held_by(&self.options.identity);
        match lease {
            Some(lease) if self.held.is_some() && is_ours(&lease) => {}
            _ if self.held.is_some() => self.read().await,
            Some(lease) => self.observe(&lease),
            None => self.read().await,
        }
    }

    fn observe(&mut self, lease: &Lease) {
        let version = lease.resource_version().unwrap_or_default();
        let now = self.clock.uptime();
        let observed = ObservedLease::read(self.observed.take(), record(lease), version, now);
        if !observed.record.is_held_by(&self.options.identity) {
            self.held = None;
            self.follow(observed.record.holder.as_deref());
        }
        self.observed = Some(observed);
    }

    fn lead(&self, term: Term, renewed: Uptime) {
        let LeaseTimings {
            lease_duration,
            renew_deadline,
            ..
        } = self.options.timings;
        let (until, expires) = (renewed + renew_deadline, renewed + lease_duration);
        if self.setter.lead(term, until, expires) {
            self.report(true, Some(&self.options.identity));
        }
    }

    fn follow(&self, holder: Option<&str>) {
        let led = self.setter.leads();
        self.setter.follow(holder.map(str::to_owned));
        if led {
            self.report(false, holder);
        }
    }

    fn report(&self, leads: bool, holder: Option<&str>) {
        let lease = &self.options.name;
        let change = LeadershipChanged {
            lease,
            leads,
            holder,
        };
        self.telemetry.emit(&change);
    }

    /// A term that was not renewed in time is over, even if the Lease still names this candidate.
    fn step_down_if_late(&mut self) {
        let renew_deadline = self.options.timings.renew_deadline;
        if self
            .held
            .is_some_and(|(_, renewed)| renewed + renew_deadline <= self.clock.uptime())
        {
            tracing::warn!(
                lease = self.options.name,
                "the lease was not renewed in time"
            );
            self.held = None;
            self.follow(None);
        }
    }

    async fn release(mut self) {
        self.follow(None);
        if let (Some(_), Some(observed)) = (self.held.take(), &self.observed) {
            let record = observed.record.released(self.clock.now());
            let limit = self.options.timings.retry_period;
            if !matches!(
                self.clock.within(limit, self.send(&record)).await,
                Some(Ok(_))
            ) {
                tracing::warn!(
                    lease = self.options.name,
                    "the lease was not released and has to expire"
                );
            }
        }
    }
}

impl std::fmt::Debug for Elector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Elector")
            .field("options", &self.options)
            .field("observed", &self.observed)
            .finish_non_exhaustive()
    }
}

/// The Lease whenever it changes; none when it is gone. Errors of the watch do no harm: it is reopened
/// after a while, and a write on a stale observation is refused.
fn changes(leases: &Api<Lease>, name: &str) -> impl Stream<Item = Option<Lease>> + use<> {
    watcher::watch_object(leases.clone(), name)
        .backoff(WatchBackoff::default())
        .filter_map(async |event| event.ok())
}

fn record(lease: &Lease) -> LeaseRecord {
    lease
        .spec
        .as_ref()
        .map(LeaseRecord::from)
        .unwrap_or_default()
}

fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_conflict() || status.is_already_exists())
}

impl Coded for Error {
    fn code(&self) -> Code {
        Code("NT-KIT-019")
    }
}
