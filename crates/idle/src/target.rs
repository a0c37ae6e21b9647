//! The workload behind a service, and the KEDA ScaledObject that scales it as well.

mod kind;
mod scale;

use kube::api::ObjectMeta;

pub use self::{
    kind::{KindLookup, UnknownKind, canonical_kind, scaled_object_kind},
    scale::{keda_change, read, read_keda, scale_change},
};

/// The scale of a workload.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// There is no such object, or no such kind.
    Missing,
    /// The API server did not respond; nothing is decided without a response.
    Unknown,
    /// The object exists.
    Scaled {
        /// The desired number of replicas.
        replicas: i32,
        /// The metadata of the object that was read.
        metadata: Box<ObjectMeta>,
    },
}

impl Target {
    /// The desired number of replicas.
    pub fn replicas(&self) -> Option<i32> {
        match self {
            Self::Scaled { replicas, .. } => Some(*replicas),
            _ => None,
        }
    }
}

/// The ScaledObject that a service names.
#[derive(Debug, Clone, PartialEq)]
pub enum Keda {
    /// The service names none.
    Unused,
    /// The one that it names does not exist.
    Missing,
    /// It exists.
    Found {
        /// The metadata of the object that was read.
        metadata: Box<ObjectMeta>,
        /// Whether it is paused.
        paused: bool,
        /// Whether this operator or KubeElasti paused it. A pause of a user stays.
        by_us: bool,
    },
}
