//! Where faults can strike, as a run in which nothing goes wrong shows it.

use std::collections::{BTreeSet, HashMap};

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

    pub(super) fn rule(&self, action: Action) -> Rule {
        Rule {
            point: self.point,
            filter: self.filter.clone(),
            nth: Nth::At(self.nth),
            actor: Who::Named(self.actor.clone()),
            action,
        }
    }
}

/// Every place that `entries` show, in their order.
pub fn places(entries: &[Entry]) -> Vec<Place> {
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

fn kinds(entries: &[Entry], actor: &str) -> Vec<String> {
    let mine = entries
        .iter()
        .filter(|entry| entry.actor == actor && entry.call.verb == Verb::Watch);
    let kinds: BTreeSet<_> = mine.map(|entry| entry.call.kind.clone()).collect();
    kinds.into_iter().collect()
}
