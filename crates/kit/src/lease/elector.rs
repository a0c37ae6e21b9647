//! Carries out what [`decide`] says, and tells the process where it stands.

use std::pin::pin;

use futures::{Stream, StreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client, ResourceExt,
    api::{ObjectMeta, PostParams},
    runtime::{WatchStreamExt, watcher},
};
use tokio_util::sync::CancellationToken;

use super::{Decision, Leadership, Record, Sight, Term, Timings, decide, leadership::Post};
use crate::{
    clock::{Clock, Uptime},
    planted,
    telemetry::{LeadChanged, Telemetry},
    watch::Waits,
    why::{Code, Coded},
};

/// What is elected, and who stands for it.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the Lease is.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// The candidate: unlike every other, also unlike its own former lives.
    pub identity: String,
    /// How long things last.
    pub timings: Timings,
}

/// Why nobody can be elected so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A leader could still write when another takes over, or would lose the Lease between two
    /// renewals.
    #[error("a lease lasts longer ({duration:?}) than its leader writes ({deadline:?}), and that longer than the time between renewals ({retry:?})", duration = .0.duration, deadline = .0.deadline, retry = .0.retry)]
    Timings(Timings),
    /// Nobody would know who leads.
    #[error("a candidate needs a name")]
    Nameless,
}

/// One candidate.
pub struct Elector {
    leases: Api<Lease>,
    options: Options,
    clock: Clock,
    post: Post,
    telemetry: Telemetry,
    sight: Option<Sight>,
    /// What a Lease said that was deleted: terms are counted on from there.
    former: Option<Record>,
    /// The term, and when the last renewal that succeeded was begun; nothing while others lead.
    held: Option<(Term, Uptime)>,
    /// After a failure nothing is tried before this.
    not_before: Uptime,
}

impl Elector {
    /// A candidate, and what the rest of the process asks it. `client` should not retry by itself:
    /// an answer that comes late is worth nothing here.
    pub fn new(
        client: Client,
        options: Options,
        clock: Clock,
    ) -> Result<(Self, Leadership), Error> {
        let Timings {
            duration,
            deadline,
            retry,
        } = options.timings;
        if !(duration > deadline && deadline > retry && !retry.is_zero()) {
            return Err(Error::Timings(options.timings));
        }
        if options.identity.is_empty() {
            return Err(Error::Nameless);
        }
        let (post, leadership) = Leadership::new(clock);
        let elector = Self {
            leases: Api::namespaced(client, &options.namespace),
            options,
            clock,
            post,
            telemetry: Telemetry::default(),
            sight: None,
            former: None,
            held: None,
            not_before: Uptime::ZERO,
        };
        Ok((elector, leadership))
    }

    /// The same candidate, counted by `telemetry`.
    pub fn counted_by(mut self, telemetry: Telemetry) -> Self {
        self.telemetry = telemetry;
        self
    }

    /// Stands for election until `stop`, then lets go of the Lease so that another may lead at once.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut changes = pin!(changes(&self.leases, &self.options.name));
        self.look().await;
        while !stop.is_cancelled() {
            let wait_until = self.step().await;
            tokio::select! {
                () = stop.cancelled() => break,
                () = self.clock.sleep_until(wait_until) => {}
                seen = changes.next() => self.was_told(seen.flatten()).await,
            }
        }
        self.release().await;
    }

    /// Does what is to be done now; the moment at which there may be more.
    async fn step(&mut self) -> Uptime {
        self.step_down_if_late();
        let now = self.clock.uptime();
        if now < self.not_before {
            return self.not_before;
        }
        let Options {
            identity, timings, ..
        } = &self.options;
        let renewed = self.held.map(|(_, renewed)| renewed);
        let wall = self.clock.now();
        let last = self.sight.as_ref().map(|sight| &sight.record);
        let record = match (
            decide(identity, timings, self.sight.as_ref(), renewed, now),
            last,
        ) {
            (Decision::Wait(until), _) => return until,
            (Decision::Renew, Some(last)) => last.renewed(timings.duration, wall),
            (_, Some(last)) => last.taken(identity, timings.duration, wall),
            (_, None) => match &self.former {
                Some(former) => former.taken(identity, timings.duration, wall),
                None => Record::first(identity, timings.duration, wall),
            },
        };
        self.write(record, now).await;
        self.clock.uptime().max(self.not_before)
    }

    /// Writes the record in the state that was seen. What comes of it is seen or looked up.
    async fn write(&mut self, record: Record, begun: Uptime) {
        let term = Term(record.transitions);
        match self
            .clock
            .within(self.options.timings.retry, self.put(&record))
            .await
        {
            Some(Ok(lease)) => {
                self.saw(&lease);
                self.held = Some((term, begun));
                self.lead(term, begun);
            }
            Some(Err(error)) => {
                // A conflict says that another was faster, which is how an election goes.
                if !is_conflict(&error) {
                    tracing::warn!(lease = self.options.name, %error, "the lease could not be written");
                    self.pause();
                }
                self.look().await;
            }
            None => {
                tracing::warn!(
                    lease = self.options.name,
                    "no answer to a write of the lease"
                );
                self.look().await;
            }
        }
    }

    async fn put(&self, record: &Record) -> Result<Lease, kube::Error> {
        let name = &self.options.name;
        let mut lease = Lease {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                ..ObjectMeta::default()
            },
            spec: Some(record.into()),
        };
        let parameters = PostParams::default();
        match &self.sight {
            None => self.leases.create(&parameters, &lease).await,
            Some(sight) => {
                lease.metadata.resource_version = Some(sight.version.clone());
                self.leases.replace(name, &parameters, &lease).await
            }
        }
    }

    /// Reads the Lease. If that fails, what was seen stays: a write in that state is refused if it
    /// is no longer true.
    async fn look(&mut self) {
        let read = self.leases.get_opt(&self.options.name);
        match self.clock.within(self.options.timings.retry, read).await {
            Some(Ok(Some(lease))) => self.saw(&lease),
            Some(Ok(None)) => self.missed(),
            Some(Err(error)) => {
                tracing::warn!(lease = self.options.name, %error, "the lease could not be read");
                self.pause();
            }
            None => tracing::warn!(
                lease = self.options.name,
                "no answer to a read of the lease"
            ),
        }
    }

    /// Nothing is tried for a while after a failure.
    fn pause(&mut self) {
        let later = self.clock.uptime() + self.options.timings.retry;
        self.not_before = self.not_before.max(later);
    }

    /// The Lease is gone. Whoever held it may not know yet, and may write until it would have expired.
    fn missed(&mut self) {
        if let Some(sight) = self.sight.take() {
            let holder = sight.record.holder.as_deref();
            if holder.is_some_and(|holder| holder != self.options.identity) {
                self.not_before = self.not_before.max(sight.expires());
            }
            self.former = Some(sight.record).filter(|_| !planted!(TermsAnew));
        }
        self.held = None;
        self.follow(None);
    }

    /// A watch may tell what is past, so whoever leads believes only what it looks up.
    async fn was_told(&mut self, lease: Option<Lease>) {
        let is_ours = |lease: &Lease| record(lease).is_held_by(&self.options.identity);
        match lease {
            Some(lease) if self.held.is_some() && is_ours(&lease) => {}
            _ if self.held.is_some() => self.look().await,
            Some(lease) => self.saw(&lease),
            None => self.look().await,
        }
    }

    fn saw(&mut self, lease: &Lease) {
        let version = lease.resource_version().unwrap_or_default();
        let now = self.clock.uptime();
        let sight = Sight::read(self.sight.take(), record(lease), version, now);
        if !sight.record.is_held_by(&self.options.identity) {
            self.held = None;
            self.follow(sight.record.holder.as_deref());
        }
        self.sight = Some(sight);
    }

    fn lead(&self, term: Term, renewed: Uptime) {
        let Timings {
            duration, deadline, ..
        } = self.options.timings;
        let (until, expires) = (renewed + deadline, renewed + duration);
        if self.post.lead(term, until, expires) {
            self.tell(true, Some(&self.options.identity));
        }
    }

    fn follow(&self, holder: Option<&str>) {
        let led = self.post.leads();
        self.post.follow(holder.map(str::to_owned));
        if led {
            self.tell(false, holder);
        }
    }

    fn tell(&self, leads: bool, holder: Option<&str>) {
        let lease = &self.options.name;
        let change = LeadChanged {
            lease,
            leads,
            holder,
        };
        self.telemetry.emit(&change);
    }

    /// A term that was not renewed in time is over, even if the Lease still has our name.
    fn step_down_if_late(&mut self) {
        let deadline = self.options.timings.deadline;
        if self
            .held
            .is_some_and(|(_, renewed)| renewed + deadline <= self.clock.uptime())
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
        if let (Some(_), Some(sight)) = (self.held.take(), &self.sight) {
            let record = sight.record.released(self.clock.now());
            let limit = self.options.timings.retry;
            if !matches!(
                self.clock.within(limit, self.put(&record)).await,
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
            .field("sight", &self.sight)
            .finish_non_exhaustive()
    }
}

/// The Lease whenever it changes; nothing when it is gone. Trouble with the watch does no harm: it is
/// tried again after a while, and what counts is refused or confirmed by the write.
fn changes(leases: &Api<Lease>, name: &str) -> impl Stream<Item = Option<Lease>> + use<> {
    watcher::watch_object(leases.clone(), name)
        .backoff(Waits::default())
        .filter_map(async |seen| seen.ok())
}

fn record(lease: &Lease) -> Record {
    lease.spec.as_ref().map(Record::from).unwrap_or_default()
}

fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_conflict() || status.is_already_exists())
}

impl Coded for Error {
    fn code(&self) -> Code {
        Code("NT-KIT-019")
    }
}
