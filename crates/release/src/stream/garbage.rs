//! Garbage collection: what no release refers to any more is deleted, in two phases.
//!
//! First an object is marked as unreferenced. It is deleted only if it was still unreferenced a while
//! later, after the targets were read from the server and not from a cache, and only the object that was
//! looked at: an ImageStream that loses an annotation for a moment costs nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use jiff::{SignedDuration, Timestamp};
use neap_kit::key::Key;

use super::options::GarbageLimits;

/// The targets of all streams, as the server has them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Targets {
    /// The tags of each target.
    pub tags: BTreeMap<Key, BTreeSet<String>>,
    /// The generation of each target.
    pub generations: BTreeMap<Key, i64>,
}

/// A kind of object that belongs to releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A Job.
    Job,
    /// A mirror.
    Mirror,
    /// A ReleasePayload.
    Payload,
}

/// An object that belongs to a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub key: Key,
    /// Its uid.
    pub uid: String,
    /// The target of its release.
    pub target: Key,
    /// The tag of its release.
    pub tag: String,
    /// The generation of the target when it was made; none for payloads.
    pub generation: Option<i64>,
    /// Since when it is known to be unreferenced.
    pub marked: Option<Timestamp>,
    /// When it was completed, for a Job.
    pub completed: Option<Timestamp>,
}

/// What to do about an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sweep {
    /// It is unreferenced: mark it.
    Mark(Candidate),
    /// It is referenced again: remove the mark.
    Unmark(Candidate),
    /// It has been unreferenced for long enough.
    Delete(Candidate, String),
}

impl fmt::Display for Sweep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verb, candidate) = match self {
            Self::Mark(candidate) => ("mark as garbage", candidate),
            Self::Unmark(candidate) => ("no longer mark as garbage", candidate),
            Self::Delete(candidate, _) => ("delete", candidate),
        };
        let Candidate { kind, key, .. } = candidate;
        match self {
            Self::Delete(_, reason) => write!(f, "{verb} {kind:?} {key}: {reason}"),
            _ => write!(f, "{verb} {kind:?} {key}"),
        }
    }
}

/// Decides what to do about objects of releases. Objects of targets that are not known are left alone.
pub fn sweep(
    candidates: Vec<Candidate>,
    targets: &Targets,
    limits: &GarbageLimits,
    now: Timestamp,
) -> Vec<Sweep> {
    let mut sweeps = Vec::new();
    let mut deletions = 0;
    for candidate in candidates {
        let (Some(tags), Some(generation)) = (
            targets.tags.get(&candidate.target),
            targets.generations.get(&candidate.target),
        ) else {
            continue;
        };
        if tags.contains(&candidate.tag) {
            if candidate.marked.is_some() {
                sweeps.push(Sweep::Unmark(candidate));
            }
            continue;
        }
        // An object that was made in this generation may belong to a tag that is about to be written.
        let is_of_older_generation = candidate.generation.is_none_or(|made| made < *generation);
        let is_completed = candidate
            .completed
            .is_some_and(|completed| now.duration_since(completed) > signed(limits.completed_jobs));
        if !is_of_older_generation && !is_completed {
            continue;
        }
        match candidate.marked {
            None => sweeps.push(Sweep::Mark(candidate)),
            Some(marked) if now.duration_since(marked) < signed(limits.grace) => {}
            Some(_) if deletions >= limits.max_deletions => {}
            Some(marked) => {
                deletions += 1;
                let reason = format!("its release {} has been gone since {marked}", candidate.tag);
                sweeps.push(Sweep::Delete(candidate, reason));
            }
        }
    }
    sweeps
}

fn signed(duration: std::time::Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const LIMITS: GarbageLimits = GarbageLimits {
        grace: Duration::from_mins(10),
        completed_jobs: Duration::from_hours(2),
        max_deletions: 2,
    };

    fn now() -> Timestamp {
        "2026-01-02T04:00:00Z".parse().unwrap()
    }

    fn ago(minutes: i64) -> Timestamp {
        now()
            .checked_sub(SignedDuration::from_mins(minutes))
            .unwrap()
    }

    fn candidate(tag: &str) -> Candidate {
        Candidate {
            kind: Kind::Mirror,
            key: Key::new("ocp", &format!("mirror-of-{tag}")),
            uid: "uid".to_owned(),
            target: Key::new("ocp", "release"),
            tag: tag.to_owned(),
            generation: Some(1),
            marked: None,
            completed: None,
        }
    }

    fn targets() -> Targets {
        let target = Key::new("ocp", "release");
        Targets {
            tags: [(target.clone(), ["kept".to_owned()].into())].into(),
            generations: [(target, 2)].into(),
        }
    }

    fn swept(candidate: Candidate) -> Vec<Sweep> {
        sweep(vec![candidate], &targets(), &LIMITS, now())
    }

    #[test]
    fn an_object_is_marked_first_and_deleted_later() {
        let gone = candidate("gone");
        assert_eq!(swept(gone.clone()), [Sweep::Mark(gone.clone())]);
        let young = Candidate {
            marked: Some(ago(9)),
            ..gone.clone()
        };
        assert_eq!(swept(young), []);
        let old = Candidate {
            marked: Some(ago(11)),
            ..gone
        };
        assert!(matches!(&swept(old)[..], [Sweep::Delete(..)]));
    }

    #[test]
    fn what_is_referenced_stays() {
        assert_eq!(swept(candidate("kept")), []);
        let back = Candidate {
            marked: Some(ago(60)),
            ..candidate("kept")
        };
        assert_eq!(swept(back.clone()), [Sweep::Unmark(back)]);
    }

    #[test]
    fn objects_of_unknown_targets_and_new_ones_stay() {
        let elsewhere = Candidate {
            target: Key::new("other", "release"),
            marked: Some(ago(60)),
            ..candidate("gone")
        };
        assert_eq!(
            swept(elsewhere),
            [],
            "the same name in another namespace is another release"
        );
        let new = Candidate {
            generation: Some(2),
            marked: Some(ago(60)),
            ..candidate("gone")
        };
        assert_eq!(swept(new.clone()), []);
        let completed = Candidate {
            kind: Kind::Job,
            completed: Some(ago(121)),
            ..new
        };
        assert!(matches!(&swept(completed)[..], [Sweep::Delete(..)]));
    }

    #[test]
    fn deletions_are_limited() {
        let all: Vec<_> = (0..5)
            .map(|at| Candidate {
                marked: Some(ago(60)),
                ..candidate(&format!("gone-{at}"))
            })
            .collect();
        assert_eq!(sweep(all, &targets(), &LIMITS, now()).len(), 2);
    }
}
