//! Who answers.

use std::collections::{HashMap, HashSet};

use super::{Errand, Reply};

/// A system outside, as a play has it.
pub trait System: Send {
    /// Does what it is asked, or not.
    fn answer(&mut self, errand: &Errand) -> Reply;
}

/// A system that knows what it has done by its key, and who came later by the fence; or one that
/// knows only one of them, because real ones forget.
#[derive(Debug, Clone)]
pub struct Keeper {
    keys: bool,
    fences: bool,
    done: HashSet<String>,
    seen: HashMap<String, u64>,
}

impl Default for Keeper {
    fn default() -> Self {
        Self {
            keys: true,
            fences: true,
            done: HashSet::new(),
            seen: HashMap::new(),
        }
    }
}

impl Keeper {
    /// One that does whatever it is asked, however often.
    pub fn without_keys(mut self) -> Self {
        self.keys = false;
        self
    }

    /// One that does what it is asked by anybody.
    pub fn without_fences(mut self) -> Self {
        self.fences = false;
        self
    }
}

impl System for Keeper {
    fn answer(&mut self, errand: &Errand) -> Reply {
        let newest = self.seen.entry(errand.operation.clone()).or_default();
        if self.fences && errand.fence < *newest {
            return Reply::TooLate;
        }
        *newest = errand.fence.max(*newest);
        let first = self.done.insert(errand.key.clone());
        if first || !self.keys {
            Reply::Done
        } else {
            Reply::Already
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(system: &mut Keeper, key: &str, fence: u64) -> Reply {
        system.answer(&Errand {
            call: "make",
            thing: "network".to_owned(),
            operation: "one".to_owned(),
            key: key.to_owned(),
            fence,
        })
    }

    #[test]
    fn what_was_done_is_not_done_again_and_nothing_is_done_too_late() {
        let mut careful = Keeper::default();
        assert_eq!(asked(&mut careful, "a", 2), Reply::Done);
        assert_eq!(asked(&mut careful, "a", 3), Reply::Already);
        assert_eq!(asked(&mut careful, "a", 2), Reply::TooLate);
        assert_eq!(asked(&mut careful, "b", 2), Reply::TooLate);
        let mut forgetful = Keeper::default().without_keys();
        assert_eq!(asked(&mut forgetful, "a", 2), Reply::Done);
        assert_eq!(asked(&mut forgetful, "a", 2), Reply::Done);
        assert_eq!(asked(&mut forgetful, "a", 1), Reply::TooLate);
        let mut open = Keeper::default().without_fences();
        assert_eq!(asked(&mut open, "a", 2), Reply::Done);
        assert_eq!(asked(&mut open, "b", 1), Reply::Done);
    }
}
