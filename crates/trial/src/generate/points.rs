//! Where faults can strike, as a run in which nothing goes wrong shows it.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use crate::{
    Entry, What,
    plan::{Action, Filter, Nth, Point, Rule, Verb, Who},
};

/// One thing that passed, described so that it is found again.
#[derive(Debug, Clone)]
pub struct Place {
    /// Where it passed.
    pub point: Point,
    /// What it was.
    pub filter: Filter,
    /// The how manieth of its like.
    pub nth: u32,
    /// Whose it was.
    pub actor: String,
    /// The kinds that its actor watches.
    pub(super) kinds: Vec<String>,
}

impl Place {
    pub(super) fn creates(&self) -> bool {
        self.filter.verb == Some(Verb::Create)
    }

    /// Whether it is a renewal of a Lease on its way to the server.
    pub(super) fn renews(&self) -> bool {
        self.point == Point::WriteBefore && self.filter.kind.as_deref() == Some(LEASES)
    }

    pub(crate) fn rule(&self, action: Action) -> Rule {
        self.rule_for(Nth::At(self.nth), action)
    }

    /// The same for this one and so many after it.
    pub(super) fn rule_for_more(&self, more: u32, action: Action) -> Rule {
        self.rule_for(Nth::Span(self.nth, self.nth + more), action)
    }

    fn rule_for(&self, nth: Nth, action: Action) -> Rule {
        Rule {
            point: self.point,
            filter: self.filter.clone(),
            nth,
            actor: Who::Named(self.actor.clone()),
            action,
        }
    }
}

/// Every place that `entries` show, in their order. Renewals of a Lease are all alike: of them those
/// count that are close to work.
pub fn places(entries: &[Entry]) -> Vec<Place> {
    let work = moments(entries);
    let mut seen: HashMap<(Point, Filter, &str), u32> = HashMap::new();
    let mut places = Vec::new();
    for entry in entries {
        let call = &entry.call;
        let point = match (&entry.what, call.verb) {
            (What::Told(_), _) => Point::WatchEvent,
            (What::Asked, Verb::Get) => Point::Read,
            (What::Asked, Verb::List) => Point::ListPage,
            (What::Asked, Verb::Watch) => Point::WatchOpen,
            (What::Asked, Verb::Call) => Point::ExtBefore,
            (What::Answered(200), Verb::Call) => Point::ExtAfter,
            (What::Asked, _) => Point::WriteBefore,
            (What::Answered(200..300), verb) if verb.writes() => Point::WriteAfter,
            _ => continue,
        };
        // Names of objects that somebody made are as good as any other word for them.
        let outside = call.verb == Verb::Call;
        let kind = Some(call.kind.clone());
        let filter = Filter {
            verb: Some(call.verb).filter(|_| !outside),
            kind: kind.clone().filter(|_| !outside),
            namespace: None,
            name: Some(call.name.clone()).filter(|name| !name.is_empty()),
            call: kind.filter(|_| outside),
        };
        let nth = seen
            .entry((point, filter.clone(), &entry.actor))
            .or_default();
        *nth += 1;
        if call.kind == LEASES && !is_close(entry.at, &work) {
            continue;
        }
        places.push(Place {
            point,
            filter,
            nth: *nth,
            actor: entry.actor.clone(),
            kinds: kinds(entries, &entry.actor),
        });
    }
    places
}

const LEASES: &str = "leases";
/// As long as a leader waits between two renewals.
const CLOSE: Duration = Duration::from_secs(4);

/// When somebody wrote something other than a Lease.
fn moments(entries: &[Entry]) -> Vec<Duration> {
    let asked = entries.iter().filter(|entry| entry.what == What::Asked);
    let work = asked.filter(|entry| entry.call.verb.writes() && entry.call.kind != LEASES);
    work.map(|entry| entry.at).collect()
}

/// Whether `at` is close to one of `moments`, which are in their order.
fn is_close(at: Duration, moments: &[Duration]) -> bool {
    let next = moments.partition_point(|moment| *moment < at);
    let near = moments[next.saturating_sub(1)..].iter().take(2);
    near.into_iter().any(|moment| moment.abs_diff(at) <= CLOSE)
}

fn kinds(entries: &[Entry], actor: &str) -> Vec<String> {
    let mine = entries
        .iter()
        .filter(|entry| entry.actor == actor && entry.call.verb == Verb::Watch);
    let kinds: BTreeSet<_> = mine.map(|entry| entry.call.kind.clone()).collect();
    kinds.into_iter().collect()
}
