//! Sites where faults can strike, taken from the trace of a run without faults.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use crate::{
    EntryKind, TraceEntry,
    plan::{Action, ActorFilter, Filter, Nth, Point, Rule, Verb},
};

/// A request or event of a trace, described so that a rule can match it in another run.
#[derive(Debug, Clone)]
pub struct FaultSite {
    pub point: Point,
    pub filter: Filter,
    /// Its position among those that the filter matches; the first is 1.
    pub nth: u32,
    pub actor: String,
    /// The kinds that its actor watches.
    pub(super) kinds: Vec<String>,
}

impl FaultSite {
    pub(super) fn creates(&self) -> bool {
        self.filter.verb == Some(Verb::Create)
    }

    /// Whether it is a call over HTTP, which has a body and a connection that breaks. Other calls are
    /// named by a word, and these by their method.
    pub(super) fn is_http(&self) -> bool {
        let call = self.filter.call.as_deref().unwrap_or_default();
        !call.is_empty() && call.bytes().all(|byte| byte.is_ascii_uppercase())
    }

    /// Whether it is the renewal of a Lease on its way to the server.
    pub(super) fn renews(&self) -> bool {
        self.point == Point::WriteBefore && self.filter.kind.as_deref() == Some(LEASES)
    }

    pub(crate) fn rule(&self, action: Action) -> Rule {
        self.rule_for(Nth::At(self.nth), action)
    }

    /// A rule for this request and `more` that follow it.
    pub(super) fn rule_for_more(&self, more: u32, action: Action) -> Rule {
        self.rule_for(Nth::Span(self.nth, self.nth + more), action)
    }

    fn rule_for(&self, nth: Nth, action: Action) -> Rule {
        Rule {
            point: self.point,
            filter: self.filter.clone(),
            nth,
            actor: ActorFilter::Named(self.actor.clone()),
            action,
        }
    }
}

/// Every site of the trace, in order. Renewals of a Lease are all alike: only those close to other
/// writes are included.
pub fn fault_sites(entries: &[TraceEntry]) -> Vec<FaultSite> {
    let work = write_times(entries);
    let mut seen: HashMap<(Point, Filter, &str), u32> = HashMap::new();
    let mut fault_sites = Vec::new();
    for entry in entries {
        let call = &entry.call;
        let point = match (&entry.kind, call.verb) {
            (EntryKind::WatchEvent(_), _) => Point::WatchEvent,
            (EntryKind::Request, Verb::Get) => Point::Read,
            (EntryKind::Request, Verb::List) => Point::ListPage,
            (EntryKind::Request, Verb::Watch) => Point::WatchOpen,
            (EntryKind::Request, Verb::Call) => Point::ExtBefore,
            (EntryKind::Response(200..300), Verb::Call) => Point::ExtAfter,
            (EntryKind::Request, _) => Point::WriteBefore,
            (EntryKind::Response(200..300), verb) if verb.writes() => Point::WriteAfter,
            _ => continue,
        };
        // Object names are as good a filter as any.
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
        if call.kind == LEASES && !is_near(entry.at, &work) {
            continue;
        }
        fault_sites.push(FaultSite {
            point,
            filter,
            nth: *nth,
            actor: entry.actor.clone(),
            kinds: watched_kinds(entries, &entry.actor),
        });
    }
    fault_sites
}

const LEASES: &str = "leases";
/// The renewal interval of a leader.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(4);

/// The times of all writes except those to Leases.
fn write_times(entries: &[TraceEntry]) -> Vec<Duration> {
    let asked = entries
        .iter()
        .filter(|entry| entry.kind == EntryKind::Request);
    let work = asked.filter(|entry| entry.call.verb.writes() && entry.call.kind != LEASES);
    work.map(|entry| entry.at).collect()
}

/// Whether `at` is close to one of `write_times`, which are sorted.
fn is_near(at: Duration, write_times: &[Duration]) -> bool {
    let next = write_times.partition_point(|moment| *moment < at);
    let near = write_times[next.saturating_sub(1)..].iter().take(2);
    near.into_iter()
        .any(|moment| moment.abs_diff(at) <= RENEWAL_INTERVAL)
}

fn watched_kinds(entries: &[TraceEntry], actor: &str) -> Vec<String> {
    let mine = entries
        .iter()
        .filter(|entry| entry.actor == actor && entry.call.verb == Verb::Watch);
    let kinds: BTreeSet<_> = mine.map(|entry| entry.call.kind.clone()).collect();
    kinds.into_iter().collect()
}
