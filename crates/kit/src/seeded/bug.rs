//! The mistakes there are, and the one that is planted.

use std::sync::atomic::{AtomicUsize, Ordering};

/// There is no such mistake.
#[derive(Debug, thiserror::Error)]
#[error("there is no mistake {0:?} to plant")]
pub struct Unknown(String);

static PLANTED: AtomicUsize = AtomicUsize::new(NONE);
const NONE: usize = usize::MAX;

macro_rules! bugs {
    ($($bug:ident $name:literal,)*) => {
        /// A mistake that can be planted.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the table says what each of them is")]
        pub enum Bug {
            $($bug,)*
        }

        impl Bug {
            /// The names of all of them, as the table has them.
            pub const NAMES: &[&str] = &[$($name,)*];
        }
    };
}

bugs! {
    // kit: writing
    ConfirmUnasked "confirm-unasked",
    ConfirmByName "confirm-by-name",
    ConflictIsGone "conflict-is-gone",
    LateIsDone "late-is-done",
    RefusalPanics "refusal-panics",
    NameUnasked "name-unasked",
    WriteToldWhole "write-told-whole",
    // kit: looking again
    FailureForgotten "failure-forgotten",
    NewsForgotten "news-forgotten",
    AgainForgotten "again-forgotten",
    EchoUnawaited "echo-unawaited",
    RemovalUnnoted "removal-unnoted",
    OneAtATime "one-at-a-time",
    // kit: watching
    AnyAge "any-age",
    RelistKeeps "relist-keeps",
    RelistSilent "relist-silent",
    WatchGivenUp "watch-given-up",
    WatchAtOnce "watch-at-once",
    ListCut "list-cut",
    IndexKeeps "index-keeps",
    // kit: leading
    FollowersWrite "followers-write",
    TermsAnew "terms-anew",
    // kit: operations
    KeyOfAttempt "key-of-attempt",
    FenceOfStep "fence-of-step",
    CrashIsFailure "crash-is-failure",
    ConflictsAtOnce "conflicts-at-once",
    // world: what all share
    KnownTooEarly "known-too-early",
    ReplacedIsSettled "replaced-is-settled",
    ReplacedAtOnce "replaced-at-once",
    TakenIsMade "taken-is-made",
    MadeOrNot "made-or-not",
    EndedOrNot "ended-or-not",
    SaidOrNot "said-or-not",
    AdoptedOrNot "adopted-or-not",
    DeletesUntold "deletes-untold",
    RefusalToldWhole "refusal-told-whole",
    RevisionDisowned "revision-disowned",
    // world: sets
    ServerNames "server-names",
    DoneByGeneration "done-by-generation",
    NodeUntold "node-untold",
    SetDisowned "set-disowned",
    SetOrNot "set-or-not",
    SizeOrNot "size-or-not",
    CompleteAnew "complete-anew",
    ClaimsAfterPods "claims-after-pods",
    ClaimOrNot "claim-or-not",
    StepOrNot "step-or-not",
    // world: jobs
    FreedBeforeCounted "freed-before-counted",
    EndedBeforeFreed "ended-before-freed",
    NamedTwice "named-twice",
    NumberedTwice "numbered-twice",
    StrangersKept "strangers-kept",
    HourSeenTo "hour-seen-to",
    TimeInName "time-in-name",
    // world: services, budgets, claims, scheduler
    EndpointsLeft "endpoints-left",
    EndpointsOrNot "endpoints-or-not",
    SliceOrNot "slice-or-not",
    BudgetUntold "budget-untold",
    VolumeTaken "volume-taken",
    BoundByAnother "bound-by-another",
    PlacedBeforeBound "placed-before-bound",
    LabelsUntold "labels-untold",
    ReasonOrNot "reason-or-not",
}

/// Plants the mistake of this name, or none, in place of what was planted before.
pub fn plant(name: Option<&str>) -> Result<(), Unknown> {
    let place = match name {
        None => NONE,
        Some(name) => {
            let place = Bug::NAMES.iter().position(|known| *known == name);
            place.ok_or_else(|| Unknown(name.to_owned()))?
        }
    };
    PLANTED.store(place, Ordering::Relaxed);
    Ok(())
}

/// Whether `bug` is the one that is planted.
pub fn is_planted(bug: Bug) -> bool {
    PLANTED.load(Ordering::Relaxed) == bug as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_have_the_same_name() {
        let names: BTreeSet<_> = Bug::NAMES.iter().collect();
        assert_eq!(names.len(), Bug::NAMES.len());
    }

    #[test]
    fn one_is_planted_at_a_time() {
        assert!(!is_planted(Bug::AnyAge));
        plant(Some("any-age")).unwrap();
        assert!(is_planted(Bug::AnyAge) && !is_planted(Bug::ConfirmUnasked));
        plant(None).unwrap();
        assert!(!is_planted(Bug::AnyAge));
        assert!(plant(Some("no-such-thing")).is_err());
    }
}
