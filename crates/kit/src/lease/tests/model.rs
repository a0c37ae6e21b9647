//! A model of several candidates and one Lease, with clocks that disagree, pauses and lost responses:
//! at no time may two of them write.

use proptest::prelude::*;

use super::*;

/// A candidate with its own clock.
#[derive(Debug, Clone)]
struct Candidate {
    name: String,
    /// The speed of its clock in thousandths of true time, and its offset.
    pace: u64,
    began: u64,
    observed: Option<ObservedLease>,
    held: Option<Duration>,
    /// The write in flight: its content, the version it requires, and when it was started.
    in_flight: Option<(LeaseRecord, Option<String>, Duration)>,
}

/// The Lease on the server.
#[derive(Debug, Default)]
struct StoredLease {
    record: Option<LeaseRecord>,
    version: u64,
}

#[derive(Debug, Clone)]
enum ModelEvent {
    /// True time passes, in milliseconds.
    Time(u64),
    /// A candidate reads its clock and decides.
    Run(usize),
    /// The write of a candidate reaches the server; the response arrives or is lost.
    Arrive(usize, bool),
    /// A candidate reads the Lease.
    Read(usize),
    /// A candidate loses its state, as after a crash, and keeps its name.
    Restart(usize),
}

impl Candidate {
    fn now(&self, truth: u64) -> Duration {
        Duration::from_millis(self.began + truth * self.pace / 1000)
    }

    fn may_write(&self, truth: u64) -> bool {
        let renew_deadline = LeaseTimings::default().renew_deadline;
        self.held
            .is_some_and(|begun| self.now(truth) < begun + renew_deadline)
    }

    fn run(&mut self, truth: u64) {
        let (timings, now) = (LeaseTimings::default(), self.now(truth));
        if self.held.is_some() && !self.may_write(truth) {
            self.held = None;
        }
        if self.in_flight.is_some() {
            return;
        }
        let wall = jiff::Timestamp::UNIX_EPOCH;
        let last = self.observed.as_ref().map(|observed| &observed.record);
        let record = match (
            decide(&self.name, &timings, self.observed.as_ref(), self.held, now),
            last,
        ) {
            (Decision::Wait(_), _) => return,
            (Decision::Renew, Some(last)) => last.renewed(timings.lease_duration, wall),
            (_, Some(last)) => last.taken_over(&self.name, timings.lease_duration, wall),
            (_, None) => LeaseRecord::first(&self.name, timings.lease_duration, wall),
        };
        let version = self
            .observed
            .as_ref()
            .map(|observed| observed.version.clone());
        self.in_flight = Some((record, version, now));
    }

    fn read(&mut self, lease: &StoredLease, truth: u64) {
        let now = self.now(truth);
        match &lease.record {
            None => (self.observed, self.held) = (None, None),
            Some(record) => {
                let version = lease.version.to_string();
                self.observed = Some(ObservedLease::read(
                    self.observed.take(),
                    record.clone(),
                    version,
                    now,
                ));
                if !record.is_held_by(&self.name) {
                    self.held = None;
                }
            }
        }
    }

    fn arrive(&mut self, lease: &mut StoredLease, answered: bool, truth: u64) {
        let Some((record, version, begun)) = self.in_flight.take() else {
            return;
        };
        let current = lease.record.as_ref().map(|_| lease.version.to_string());
        let fits = version == current;
        if fits {
            lease.record = Some(record);
            lease.version += 1;
        }
        if answered {
            self.read(lease, truth);
            if fits {
                self.held = Some(begun);
            }
        }
    }
}

fn events(candidates: usize) -> impl Strategy<Value = Vec<ModelEvent>> {
    let candidate = 0..candidates;
    let one = prop_oneof![
        4 => (0_u64..4_000).prop_map(ModelEvent::Time),
        1 => (4_000_u64..30_000).prop_map(ModelEvent::Time),
        6 => candidate.clone().prop_map(ModelEvent::Run),
        6 => (candidate.clone(), prop::bool::weighted(0.8)).prop_map(|(who, answered)| ModelEvent::Arrive(who, answered)),
        4 => candidate.clone().prop_map(ModelEvent::Read),
        1 => candidate.prop_map(ModelEvent::Restart),
    ];
    prop::collection::vec(one, 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn two_candidates_never_may_write_at_once(
        clocks in prop::collection::vec((900_u64..1_100, 0_u64..100_000), 2..5),
        script in events(4),
    ) {
        let mut candidates: Vec<_> = clocks
            .iter()
            .enumerate()
            .map(|(index, &(pace, began))| Candidate {
                name: format!("c{index}"),
                pace,
                began,
                observed: None,
                held: None,
                in_flight: None,
            })
            .collect();
        let (mut lease, mut truth) = (StoredLease::default(), 0);
        let count = candidates.len();
        for event in script {
            match event {
                ModelEvent::Time(passed) => truth += passed,
                ModelEvent::Run(who) => candidates[who % count].run(truth),
                ModelEvent::Read(who) => candidates[who % count].read(&lease, truth),
                ModelEvent::Arrive(who, answered) => candidates[who % count].arrive(&mut lease, answered, truth),
                ModelEvent::Restart(who) => {
                    let one = &mut candidates[who % count];
                    (one.observed, one.held, one.in_flight) = (None, None, None);
                }
            }
            let writers: Vec<_> = candidates.iter().filter(|one| one.may_write(truth)).collect();
            prop_assert!(writers.len() <= 1, "{writers:#?}");
        }
    }
}
