//! Many candidates on one register, with clocks that disagree, pauses and answers that get lost:
//! never do two of them believe that they may write.

use proptest::prelude::*;

use super::*;

/// A candidate with its own idea of time.
#[derive(Debug, Clone)]
struct Candidate {
    name: String,
    /// Its clock goes at this many thousandths of the true pace, and began somewhere.
    pace: u64,
    began: u64,
    sight: Option<Sight>,
    held: Option<Duration>,
    /// The write that is under way: what it says, the version it needs, and when it was begun.
    in_flight: Option<(Record, Option<String>, Duration)>,
}

/// The Lease in the server.
#[derive(Debug, Default)]
struct Register {
    record: Option<Record>,
    version: u64,
}

#[derive(Debug, Clone)]
enum Happening {
    /// True time passes, in milliseconds.
    Time(u64),
    /// A candidate runs: looks at its clock and decides.
    Run(usize),
    /// The write of a candidate reaches the server; the answer comes back or is lost.
    Arrive(usize, bool),
    /// A candidate reads.
    Look(usize),
    /// A candidate forgets everything, as after a crash, and has its old name.
    Restart(usize),
}

impl Candidate {
    fn now(&self, truth: u64) -> Duration {
        Duration::from_millis(self.began + truth * self.pace / 1000)
    }

    fn may_write(&self, truth: u64) -> bool {
        let deadline = Timings::default().deadline;
        self.held
            .is_some_and(|begun| self.now(truth) < begun + deadline)
    }

    fn run(&mut self, truth: u64) {
        let (timings, now) = (Timings::default(), self.now(truth));
        if self.held.is_some() && !self.may_write(truth) {
            self.held = None;
        }
        if self.in_flight.is_some() {
            return;
        }
        let wall = jiff::Timestamp::UNIX_EPOCH;
        let last = self.sight.as_ref().map(|sight| &sight.record);
        let record = match (
            decide(&self.name, &timings, self.sight.as_ref(), self.held, now),
            last,
        ) {
            (Decision::Wait(_), _) => return,
            (Decision::Renew, Some(last)) => last.renewed(timings.duration, wall),
            (_, Some(last)) => last.taken(&self.name, timings.duration, wall),
            (_, None) => Record::first(&self.name, timings.duration, wall),
        };
        let version = self.sight.as_ref().map(|sight| sight.version.clone());
        self.in_flight = Some((record, version, now));
    }

    fn look(&mut self, register: &Register, truth: u64) {
        let now = self.now(truth);
        match &register.record {
            None => (self.sight, self.held) = (None, None),
            Some(record) => {
                let version = register.version.to_string();
                self.sight = Some(Sight::read(self.sight.take(), record.clone(), version, now));
                if !record.is_held_by(&self.name) {
                    self.held = None;
                }
            }
        }
    }

    fn arrive(&mut self, register: &mut Register, answered: bool, truth: u64) {
        let Some((record, version, begun)) = self.in_flight.take() else {
            return;
        };
        let current = register
            .record
            .as_ref()
            .map(|_| register.version.to_string());
        let fits = version == current;
        if fits {
            register.record = Some(record);
            register.version += 1;
        }
        if answered {
            self.look(register, truth);
            if fits {
                self.held = Some(begun);
            }
        }
    }
}

fn happenings(candidates: usize) -> impl Strategy<Value = Vec<Happening>> {
    let somebody = 0..candidates;
    let one = prop_oneof![
        4 => (0_u64..4_000).prop_map(Happening::Time),
        1 => (4_000_u64..30_000).prop_map(Happening::Time),
        6 => somebody.clone().prop_map(Happening::Run),
        6 => (somebody.clone(), prop::bool::weighted(0.8)).prop_map(|(who, told)| Happening::Arrive(who, told)),
        4 => somebody.clone().prop_map(Happening::Look),
        1 => somebody.prop_map(Happening::Restart),
    ];
    prop::collection::vec(one, 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn two_never_write_at_once(
        clocks in prop::collection::vec((900_u64..1_100, 0_u64..100_000), 2..5),
        script in happenings(4),
    ) {
        let mut candidates: Vec<_> = clocks
            .iter()
            .enumerate()
            .map(|(index, &(pace, began))| Candidate {
                name: format!("c{index}"),
                pace,
                began,
                sight: None,
                held: None,
                in_flight: None,
            })
            .collect();
        let (mut register, mut truth) = (Register::default(), 0);
        let count = candidates.len();
        for happening in script {
            match happening {
                Happening::Time(passed) => truth += passed,
                Happening::Run(who) => candidates[who % count].run(truth),
                Happening::Look(who) => candidates[who % count].look(&register, truth),
                Happening::Arrive(who, told) => candidates[who % count].arrive(&mut register, told, truth),
                Happening::Restart(who) => {
                    let one = &mut candidates[who % count];
                    (one.sight, one.held, one.in_flight) = (None, None, None);
                }
            }
            let writers: Vec<_> = candidates.iter().filter(|one| one.may_write(truth)).collect();
            prop_assert!(writers.len() <= 1, "{writers:#?}");
        }
    }
}
