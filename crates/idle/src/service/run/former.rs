//! What runs behind a service, and what did before the spec named something else.

use kube::ResourceExt;
use neap_kit::apply::Kind;

use super::{Work, targets::Found};
use crate::{
    api::{Autoscaler, ElastiService, ScaleTarget},
    service::{facts::Former, resting},
    target::{self, Keda},
};

impl Work {
    /// What runs, and KEDA; nothing if the server does not say.
    pub(super) async fn looked(
        &self,
        service: &ElastiService,
        target: &ScaleTarget,
        autoscaler: Option<&Autoscaler>,
    ) -> Option<(Found, Keda)> {
        let found = self.targets.look(service, target).await?;
        let namespace = service.namespace().unwrap_or_default();
        let keda = target::keda(&self.site.client, &namespace, autoscaler).await?;
        Some((found, keda))
    }

    /// What slept before and is no longer named, and of which kind it is.
    pub(super) async fn former(
        &self,
        service: &ElastiService,
    ) -> Option<Option<(Former, Option<Kind>)>> {
        let Some(resting) = resting::former(service) else {
            return Some(None);
        };
        let autoscaler = resting::autoscaler(resting);
        let found = self.looked(service, &resting.target, autoscaler.as_ref());
        let (Found { target, kind }, keda) = found.await?;
        Some(Some((Former { target, keda }, kind)))
    }
}
