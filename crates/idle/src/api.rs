//! What the outside sees: the custom resource, the names of what is made for it, and what operators
//! and resolvers tell each other.

mod elasti_service;
pub mod names;
mod probe_response;
mod status;
mod trigger;
pub mod wire;

pub use elasti_service::{
    Autoscaler, AutoscalerKind, ElastiService, ElastiServiceSpec, EnabledPeriod, Port, Protocol,
    Queue, ScaleTarget,
};
pub use probe_response::{
    Answer, Header, Matching, Path, PathMatching, ProbeResponse, QueryParameter,
};
pub use status::{
    Breakdown, ElastiServiceStatus, HandOff, LastWake, Mode, ResolverPort, Resting, Towards,
    WouldSleep,
};
pub use trigger::{PrometheusTrigger, Threshold, Trigger, TriggerKind};

/// Keeps an object until what was made for it is gone and what runs is awake.
pub const FINALIZER: &str = "elasti.truefoundry.com/finalizer";
