//! The number of pods that a Deployment may have.

use k8s_openapi::api::apps::v1::DeploymentSpec;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::workload::{Round, scaled_value};

/// The replica count of a Deployment, and the bounds of a rollout around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RolloutSize {
    pub(super) replicas: i32,
    /// Pods that may exist beyond `replicas` during a rollout (`maxSurge`).
    pub(super) surge: i32,
    /// Pods that may be unavailable during a rollout (`maxUnavailable`).
    pub(super) unavailable: i32,
}

impl RolloutSize {
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
        let default = || IntOrString::String("25%".to_owned());
        let surge = scaled_value(&surge.unwrap_or_else(default), replicas, Round::Up);
        let unavailable = scaled_value(&unavailable.unwrap_or_else(default), replicas, Round::Down);
        // With both at zero no pod could ever be replaced.
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

    /// The maximum number of pods.
    pub(super) fn max_replicas(self) -> i32 {
        self.replicas.saturating_add(self.surge)
    }

    /// The minimum number of available pods.
    pub(super) fn min_available(self) -> i32 {
        self.replicas - self.unavailable
    }
}

/// Whether all old pods are deleted before the first new one is created.
pub(super) fn is_recreate(spec: &DeploymentSpec) -> bool {
    let strategy = spec.strategy.as_ref();
    strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("Recreate")
}
