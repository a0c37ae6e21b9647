//! Simulated external systems.

use std::collections::{HashMap, HashSet};

use super::{ExternalCall, Reply};

/// An external system.
pub trait ExternalSystem: Send {
    /// Carries out a call, or not.
    fn answer(&mut self, external_call: &ExternalCall) -> Reply;
}

/// A system that recognises repeated calls by their key and late ones by their fence, or only one
/// of them, because real systems forget.
#[derive(Debug, Clone)]
pub struct SimulatedSystem {
    keys: bool,
    fences: bool,
    done: HashSet<String>,
    seen: HashMap<String, u64>,
}

impl Default for SimulatedSystem {
    fn default() -> Self {
        Self {
            keys: true,
            fences: true,
            done: HashSet::new(),
            seen: HashMap::new(),
        }
    }
}

impl SimulatedSystem {
    /// A system that forgets keys and carries out every call.
    pub fn without_keys(mut self) -> Self {
        self.keys = false;
        self
    }

    /// A system that ignores fences.
    pub fn without_fences(mut self) -> Self {
        self.fences = false;
        self
    }
}

impl ExternalSystem for SimulatedSystem {
    fn answer(&mut self, external_call: &ExternalCall) -> Reply {
        let newest = self
            .seen
            .entry(external_call.operation.clone())
            .or_default();
        if self.fences && external_call.fence < *newest {
            return Reply::StaleFence;
        }
        *newest = external_call.fence.max(*newest);
        let first = self.done.insert(external_call.key.clone());
        if first || !self.keys {
            Reply::Done
        } else {
            Reply::AlreadyDone
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(system: &mut SimulatedSystem, key: &str, fence: u64) -> Reply {
        system.answer(&ExternalCall {
            call: "make",
            target: "network".to_owned(),
            operation: "one".to_owned(),
            key: key.to_owned(),
            fence,
        })
    }

    #[test]
    fn what_was_done_is_not_done_again_and_nothing_is_done_too_late() {
        let mut careful = SimulatedSystem::default();
        assert_eq!(asked(&mut careful, "a", 2), Reply::Done);
        assert_eq!(asked(&mut careful, "a", 3), Reply::AlreadyDone);
        assert_eq!(asked(&mut careful, "a", 2), Reply::StaleFence);
        assert_eq!(asked(&mut careful, "b", 2), Reply::StaleFence);
        let mut forgetful = SimulatedSystem::default().without_keys();
        assert_eq!(asked(&mut forgetful, "a", 2), Reply::Done);
        assert_eq!(asked(&mut forgetful, "a", 2), Reply::Done);
        assert_eq!(asked(&mut forgetful, "a", 1), Reply::StaleFence);
        let mut open = SimulatedSystem::default().without_fences();
        assert_eq!(asked(&mut open, "a", 2), Reply::Done);
        assert_eq!(asked(&mut open, "b", 1), Reply::Done);
    }
}
