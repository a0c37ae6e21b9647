//! The list of bugs, and the one that is active.

use std::sync::atomic::{AtomicUsize, Ordering};

/// No bug has this name.
#[derive(Debug, thiserror::Error)]
#[error("there is no bug {0:?} to plant")]
pub struct UnknownBug(String);

static PLANTED: AtomicUsize = AtomicUsize::new(NONE);
const NONE: usize = usize::MAX;

macro_rules! bugs {
    ($($bug:ident $name:literal,)*) => {
        /// A bug that can be activated.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[expect(missing_docs, reason = "proof/campaign/seeded.toml describes each of them")]
        pub enum Bug {
            $($bug,)*
        }

        impl Bug {
            /// The names of all bugs, as in the table.
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
    // kit: requeueing
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
    // kit: leader election
    FollowersWrite "followers-write",
    TermsAnew "terms-anew",
    // kit: operations
    KeyOfAttempt "key-of-attempt",
    FenceOfStep "fence-of-step",
    CrashIsFailure "crash-is-failure",
    ConflictsAtOnce "conflicts-at-once",
    // world: shared by all controllers
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

/// Activates the bug of this name, or none, and deactivates the previous one.
pub fn plant(name: Option<&str>) -> Result<(), UnknownBug> {
    let index = match name {
        None => NONE,
        Some(name) => {
            let index = Bug::NAMES.iter().position(|known| *known == name);
            index.ok_or_else(|| UnknownBug(name.to_owned()))?
        }
    };
    PLANTED.store(index, Ordering::Relaxed);
    Ok(())
}

/// Whether `bug` is active.
pub fn is_planted(bug: Bug) -> bool {
    PLANTED.load(Ordering::Relaxed) == bug as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique() {
        let names: BTreeSet<_> = Bug::NAMES.iter().collect();
        assert_eq!(names.len(), Bug::NAMES.len());
    }

    #[test]
    fn one_bug_is_active_at_a_time() {
        assert!(!is_planted(Bug::AnyAge));
        plant(Some("any-age")).unwrap();
        assert!(is_planted(Bug::AnyAge) && !is_planted(Bug::ConfirmUnasked));
        plant(None).unwrap();
        assert!(!is_planted(Bug::AnyAge));
        assert!(plant(Some("no-such-thing")).is_err());
    }
}
