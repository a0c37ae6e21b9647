//! The kinds of faults, and the classes of sites at which each can strike.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use super::{FaultSite, actions};
use crate::plan::{Filter, Point, Verb};

/// The properties of a site that decide which faults can strike there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteClass {
    pub point: Point,
    /// Whether the request creates an object.
    pub creates: bool,
}

impl SiteClass {
    pub fn of(place: &FaultSite) -> Self {
        Self {
            point: place.point,
            creates: place.creates(),
        }
    }
}

/// Every kind of fault, with the classes of sites where it can strike.
pub fn fault_kinds() -> BTreeMap<String, BTreeSet<SiteClass>> {
    let mut kinds: BTreeMap<String, BTreeSet<SiteClass>> = BTreeMap::new();
    for point in Point::ALL {
        let writes = matches!(point, Point::WriteBefore | Point::WriteAfter);
        for verb in [Some(Verb::Create).filter(|_| writes), Some(Verb::Delete)] {
            let Some(verb) = verb else { continue };
            let place = FaultSite {
                point,
                filter: Filter {
                    verb: Some(verb),
                    ..Filter::default()
                },
                nth: 1,
                actor: String::new(),
                kinds: Vec::new(),
            };
            for action in actions(&place) {
                let classes = kinds.entry(action.word(point)).or_default();
                classes.insert(SiteClass::of(&place));
            }
        }
    }
    kinds
}

impl fmt::Display for SiteClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match (self.point, self.creates) {
            (Point::WriteBefore | Point::WriteAfter, true) => "create",
            (Point::WriteBefore | Point::WriteAfter, false) => "other write",
            (Point::Read, _) => "read",
            (Point::ListPage, _) => "list",
            (Point::WatchOpen, _) => "watch",
            (Point::WatchEvent, _) => "event",
            (Point::ExtBefore | Point::ExtAfter, _) => "request outside",
        };
        f.write_str(what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_create_is_told_that_there_is_one_already() {
        let kinds = fault_kinds();
        let classes = |kind: &str| kinds[kind].iter().map(ToString::to_string);
        assert_eq!(classes("fail 409").collect::<Vec<_>>(), ["create"]);
        assert_eq!(classes("fail 404").collect::<Vec<_>>(), ["other write"]);
        assert_eq!(classes("merge").collect::<Vec<_>>(), ["event"]);
    }
}
