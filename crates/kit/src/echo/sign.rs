//! What is seen of a write in a watch.

use std::{collections::BTreeMap, fmt, sync::Arc};

use futures::future::BoxFuture;

use crate::key::Key;

/// What a watch has shown of a write once it has caught up with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sign {
    /// This version or a newer one, or a whole listing begun after so many others.
    Version { version: u64, listings: u64 },
    /// That the object is gone or on its way out. The answer to a delete names no version.
    Gone { key: Key, uid: String },
}

impl Sign {
    pub(crate) fn is_in(&self, echo: &dyn Echo) -> bool {
        match self {
            Self::Version { version, listings } => {
                let Stand {
                    reached, complete, ..
                } = echo.stand();
                reached >= *version || complete.is_some_and(|complete| complete > *listings)
            }
            Self::Gone { key, uid } => !echo.holds(key, uid),
        }
    }
}

/// How far a watch has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stand {
    /// The newest version of which anything was heard.
    pub reached: u64,
    /// How many listings were begun.
    pub begun: u64,
    /// Which of them was the last to be complete; the first is 1.
    pub complete: Option<u64>,
}

/// A watch of any type, to those who have written.
pub trait Echo: Send + Sync {
    /// How far it has come.
    fn stand(&self) -> Stand;

    /// Whether the object is there, the same, and to stay.
    fn holds(&self, key: &Key, uid: &str) -> bool;

    /// Resolves once something was taken in after this was called.
    fn moved(&self) -> BoxFuture<'static, ()>;
}

/// All watches of a process.
pub trait Echoes: fmt::Debug + Send + Sync {
    /// Those of everything at an address, by the types they decode to: there may be one with whole
    /// objects and one with metadata alone. What is only a choice of objects may never show a write.
    fn at(&self, address: &str) -> Vec<(&'static str, Arc<dyn Echo>)>;
}

impl dyn Echoes + '_ {
    /// How far the watches of everything at an address have come, by the types they decode to.
    pub fn stands(&self, address: &str) -> BTreeMap<&'static str, Stand> {
        let echoes = self.at(address).into_iter();
        echoes.map(|(name, echo)| (name, echo.stand())).collect()
    }

    /// Whether a watch of everything at an address still shows this object, and as one that stays.
    pub fn holds(&self, address: &str, key: &Key, uid: &str) -> bool {
        let echoes = self.at(address);
        echoes.iter().any(|(_, echo)| echo.holds(key, uid))
    }
}
