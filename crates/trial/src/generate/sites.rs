//! Which kinds of faults there are, and what has to pass for each of them to strike.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use super::{Place, actions};
use crate::plan::{Filter, Point, Verb};

/// What a fault can strike, as far as that decides which faults can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site {
    /// Where it passes.
    pub point: Point,
    /// Whether it makes something.
    pub creates: bool,
}

impl Site {
    /// What `place` is for faults.
    pub fn of(place: &Place) -> Self {
        Self {
            point: place.point,
            creates: place.creates(),
        }
    }
}

/// Every kind of fault, with the sites where it can strike.
pub fn kinds() -> BTreeMap<String, BTreeSet<Site>> {
    let mut kinds: BTreeMap<String, BTreeSet<Site>> = BTreeMap::new();
    for point in Point::ALL {
        let writes = matches!(point, Point::WriteBefore | Point::WriteAfter);
        for verb in [Some(Verb::Create).filter(|_| writes), Some(Verb::Delete)] {
            let Some(verb) = verb else { continue };
            let place = Place {
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
                let sites = kinds.entry(action.word(point)).or_default();
                sites.insert(Site::of(&place));
            }
        }
    }
    kinds
}

impl fmt::Display for Site {
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
        let kinds = kinds();
        let sites = |kind: &str| kinds[kind].iter().map(ToString::to_string);
        assert_eq!(sites("fail 409").collect::<Vec<_>>(), ["create"]);
        assert_eq!(sites("fail 404").collect::<Vec<_>>(), ["other write"]);
        assert_eq!(sites("merge").collect::<Vec<_>>(), ["event"]);
    }
}
