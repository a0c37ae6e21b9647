//! How many pods there may be.

use k8s_openapi::api::apps::v1::DeploymentSpec;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::workload::{Round, share};

/// The wished number of pods, and the room around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) replicas: i32,
    /// So many more there may be for a time.
    pub(super) surge: i32,
    /// So many of them may be unavailable.
    pub(super) unavailable: i32,
}

impl Size {
    pub(super) fn of(spec: &DeploymentSpec) -> Self {
        let replicas = spec.replicas.unwrap_or(1);
        if is_recreate(spec) {
            return Self {
                replicas,
                surge: 0,
                unavailable: 0,
            };
        }
        let strategy = spec.strategy.as_ref();
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.clone());
        let (surge, unavailable) = rolling.map_or((None, None), |rolling| {
            (rolling.max_surge, rolling.max_unavailable)
        });
        let usual = || IntOrString::String("25%".to_owned());
        let surge = share(&surge.unwrap_or_else(usual), replicas, Round::Up);
        let unavailable = share(&unavailable.unwrap_or_else(usual), replicas, Round::Down);
        // Without any room nothing could ever be replaced.
        let unavailable = if surge == 0 {
            unavailable.max(1)
        } else {
            unavailable
        };
        Self {
            replicas,
            surge,
            unavailable: unavailable.min(replicas),
        }
    }

    /// The most pods that may be.
    pub(super) fn most(self) -> i32 {
        self.replicas.saturating_add(self.surge)
    }

    /// The fewest that must be available.
    pub(super) fn fewest(self) -> i32 {
        self.replicas - self.unavailable
    }
}

/// Whether all former pods go before the first new one comes.
pub(super) fn is_recreate(spec: &DeploymentSpec) -> bool {
    let strategy = spec.strategy.as_ref();
    strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("Recreate")
}
