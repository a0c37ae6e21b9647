//! What runs behind a service, and who else scales it.

mod kind;
mod scale;

use kube::api::ObjectMeta;

pub use self::{
    kind::{Kinds, Unknown, scaled_objects, spelled},
    scale::{keda, look, scale, switch},
};

/// What is known of what runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// There is none, or no such kind.
    Missing,
    /// It could not be asked; nothing is decided on that.
    Unknown,
    /// It is there.
    Scaled {
        /// So many are wanted.
        replicas: i32,
        /// The very object, as it was when it was looked at.
        seen: Box<ObjectMeta>,
    },
}

impl Target {
    /// How many are wanted.
    pub fn replicas(&self) -> Option<i32> {
        match self {
            Self::Scaled { replicas, .. } => Some(*replicas),
            _ => None,
        }
    }
}

/// What is known of the ScaledObject that scales it as well.
#[derive(Debug, Clone, PartialEq)]
pub enum Keda {
    /// Nobody named one.
    Unused,
    /// The one that was named is not there.
    Missing,
    /// It is there.
    Found {
        /// The very object.
        seen: Box<ObjectMeta>,
        /// Whether it stands still.
        paused: bool,
        /// Whether that is our doing. What a user paused stays so.
        by_us: bool,
    },
}
