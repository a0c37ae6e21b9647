//! The switches in the annotations of a Namespace. Those on the namespace of the operator apply
//! everywhere.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::api::annotations::{OBSERVE_ONLY, OFF, WAKE};

/// Settings for all services of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Switches {
    /// No service sleeps.
    pub off: bool,
    /// The operator only reports what would sleep.
    pub observe_only: bool,
    /// The time at which a user requested that all services wake.
    pub wake: Option<Timestamp>,
}

impl Switches {
    /// The switches in these annotations. A value that cannot be parsed counts as absent.
    pub fn of(annotations: &BTreeMap<String, String>) -> Self {
        let is_set = |name| annotations.get(name).is_some_and(|value| value == "true");
        Self {
            off: is_set(OFF),
            observe_only: is_set(OBSERVE_ONLY),
            wake: annotations.get(WAKE).and_then(|time| time.parse().ok()),
        }
    }

    /// What is set in either of the two.
    pub fn or(self, other: Self) -> Self {
        Self {
            off: self.off || other.off,
            observe_only: self.observe_only || other.observe_only,
            wake: self.wake.max(other.wake),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_in_either_place_counts() {
        let switches = |rows: &[(&str, &str)]| {
            let row = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            Switches::of(&rows.iter().map(row).collect())
        };
        let nothing = switches(&[(OFF, "yes"), (WAKE, "now"), (OBSERVE_ONLY, "")]);
        assert_eq!(nothing, Switches::default());
        let here = switches(&[(OFF, "true"), (WAKE, "2026-01-01T00:00:00Z")]);
        let everywhere = switches(&[(OBSERVE_ONLY, "true"), (WAKE, "2026-01-02T00:00:00Z")]);
        let both = here.or(everywhere);
        assert!(both.off && both.observe_only);
        assert_eq!(both.wake, everywhere.wake);
        assert_eq!(both, everywhere.or(here));
    }
}
