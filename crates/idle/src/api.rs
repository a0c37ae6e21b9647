//! The contract with users and other programs: the custom resource, the names, labels and annotations
//! of objects, and the JSON between operators and resolvers. No I/O.

pub mod annotations;
mod elasti_service;
pub mod labels;
pub mod names;
mod not_ready;
mod probe_response;
mod status;
mod trigger;
pub mod wire;

pub use elasti_service::{
    Autoscaler, AutoscalerKind, ElastiService, ElastiServiceSpec, EnabledPeriod, Port, Protocol,
    Queue, ScaleTarget,
};
pub use not_ready::{NotReady, NotReadyCause};
pub use probe_response::{
    HeaderMatch, PathMatch, PathMatching, ProbeAnswer, ProbeResponse, QueryParameterMatch,
    ValueMatching,
};
pub use status::{
    Breakdown, ElastiServiceStatus, HandOff, LastWake, Mode, ResolverPort, Resting, Towards,
    WouldSleep,
};
pub use trigger::{PrometheusTrigger, Threshold, Trigger, TriggerKind};

/// The finalizer that keeps an ElastiService until its target is awake and everything that was made for
/// it is deleted.
pub const FINALIZER: &str = "elasti.truefoundry.com/finalizer";
