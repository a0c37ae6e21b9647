//! What somebody wrote on a namespace for everything in it. Written on the namespace of the operator,
//! it is meant for everything there is.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::facts::WAKE;

/// On a Namespace: nothing in it sleeps.
pub const OFF: &str = "idle.neaptide.dev/off";
/// On a Namespace: everything in it is only observed.
pub const OBSERVE_ONLY: &str = "idle.neaptide.dev/observe-only";

/// What was said for all services of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Switches {
    /// Nothing sleeps.
    pub off: bool,
    /// It is only told what would sleep.
    pub observe_only: bool,
    /// When everything was asked to wake.
    pub wake: Option<Timestamp>,
}

impl Switches {
    /// What annotations say. What cannot be read was not said.
    pub fn of(annotations: &BTreeMap<String, String>) -> Self {
        let says = |name| annotations.get(name).is_some_and(|value| value == "true");
        Self {
            off: says(OFF),
            observe_only: says(OBSERVE_ONLY),
            wake: annotations.get(WAKE).and_then(|moment| moment.parse().ok()),
        }
    }

    /// What is said in either place.
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
    fn what_is_said_in_either_place_counts() {
        let said = |rows: &[(&str, &str)]| {
            let row = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            Switches::of(&rows.iter().map(row).collect())
        };
        let nothing = said(&[(OFF, "yes"), (WAKE, "now"), (OBSERVE_ONLY, "")]);
        assert_eq!(nothing, Switches::default());
        let here = said(&[(OFF, "true"), (WAKE, "2026-01-01T00:00:00Z")]);
        let everywhere = said(&[(OBSERVE_ONLY, "true"), (WAKE, "2026-01-02T00:00:00Z")]);
        let both = here.or(everywhere);
        assert!(both.off && both.observe_only);
        assert_eq!(both.wake, everywhere.wake);
        assert_eq!(both, everywhere.or(here));
    }
}
