//! The workload behind a service, and the one that was behind it before the spec named another.

use kube::ResourceExt;

use super::{FactSources, FormerTarget, resting, targets::FoundTarget};
use crate::{
    api::{Autoscaler, ElastiService, ScaleTarget},
    target::{self, Keda},
};

impl FactSources {
    /// Reads a workload and its ScaledObject; none if the API server did not respond.
    pub(super) async fn read_target(
        &self,
        service: &ElastiService,
        target: &ScaleTarget,
        autoscaler: Option<&Autoscaler>,
    ) -> Option<(FoundTarget, Keda)> {
        let found = self.targets.read(service, target).await?;
        let namespace = service.namespace().unwrap_or_default();
        let keda = target::read_keda(&self.context.client, &namespace, autoscaler).await?;
        Some((found, keda))
    }

    /// Reads the workload that sleeps and that the spec no longer names, if there is one; none at all if
    /// the API server did not respond.
    pub(super) async fn former(&self, service: &ElastiService) -> Option<Option<FormerTarget>> {
        let Some(resting) = resting::former(service) else {
            return Some(None);
        };
        let autoscaler = resting::autoscaler(resting);
        let found = self.read_target(service, &resting.target, autoscaler.as_ref());
        let (FoundTarget { target, kind }, keda) = found.await?;
        Some(Some(FormerTarget { target, kind, keda }))
    }
}
