//! Carries a decision out: what others stand on first, what cannot be taken back last.

use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{
    ResourceExt,
    api::{ApiResource, ObjectMeta},
};
use neap_kit::{
    apply::{Error, Kind},
    event::Note,
    key::Key,
    wiring::ECHO,
};
use serde_json::json;

use super::{Work, beside};
use crate::{
    api::{ElastiService, FINALIZER, names},
    service::{
        compatible::{Finalized, Updated},
        decide::{Decision, Finalizer, Restore, Scale, Slices},
        facts::Facts,
    },
    target::{self, Keda, Target},
};

/// Of which kind that is what is scaled.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kinds<'a> {
    pub(super) target: Option<&'a Kind>,
    pub(super) former: Option<&'a Kind>,
}

impl Work {
    pub(super) async fn carry_out(
        &self,
        facts: &Facts<'_>,
        decision: Decision,
        kinds: Kinds<'_>,
    ) -> Result<(), Error> {
        let service = facts.service;
        if decision.finalizer == Finalizer::Add {
            return self.hold(service, true).await;
        }
        if let Some(restore) = decision.restore {
            self.restore(facts, restore, kinds.former).await?;
        }
        self.private(facts, &decision).await?;
        self.slices(facts, &decision.slices).await?;
        if decision.stray {
            self.sweep(facts.service).await?;
        }
        if let (Some(pause), Keda::Found { seen, .. }) = (decision.pause, &facts.keda) {
            target::switch(&self.tools.hand, seen, pause).await?;
        }
        if let (Some(scale), Some(kind)) = (decision.scale, kinds.target) {
            self.scale(facts, &facts.target, scale, kind).await?;
        }
        self.allotment.free(&self.tools, &decision.free).await?;
        if decision.status != facts.status() {
            let after = ElastiService {
                status: Some(decision.status),
                ..service.clone()
            };
            self.report(service, &after).await?;
        }
        for note in &decision.notes {
            self.tools.tell(service, note).await;
        }
        self.tidy(service).await?;
        if decision.finalizer == Finalizer::Remove {
            let done = self.let_go(facts).await;
            let failed = done.is_err();
            self.meter.emit(&Finalized { failed });
            done?;
        }
        Ok(())
    }

    async fn report(&self, before: &ElastiService, after: &ElastiService) -> Result<(), Error> {
        let written = self.tools.report(before, after).await;
        self.meter.emit(&Updated {
            service: after,
            mode: after.status.as_ref().and_then(|status| status.mode),
            failed: written.is_err(),
        });
        written
    }

    async fn let_go(&self, facts: &Facts<'_>) -> Result<(), Error> {
        if let Some(private) = facts.private.filter(|_| facts.rival.is_none()) {
            self.tools.hand.remove(private, None).await?;
        }
        self.hold(facts.service, false).await
    }

    /// Keeps the object until we are done with it, or lets it go.
    async fn hold(&self, service: &ElastiService, hold: bool) -> Result<(), Error> {
        let others = service.finalizers().iter();
        let others = others.filter(|one| *one != FINALIZER).cloned();
        let ours = hold.then(|| FINALIZER.to_owned());
        let finalizers: Vec<_> = others.chain(ours).collect();
        let kind = Kind {
            resource: ApiResource::erase::<ElastiService>(&()),
            namespaced: true,
        };
        let change = json!({"metadata": {"finalizers": finalizers}});
        let hand = &self.tools.hand;
        let written = hand.merge(&kind, &service.metadata, None, change);
        written.await.map(drop)
    }

    async fn private(&self, facts: &Facts<'_>, decision: &Decision) -> Result<(), Error> {
        let Some(wanted) = &decision.private else {
            return Ok(());
        };
        if facts.private == Some(&**wanted) {
            return Ok(());
        }
        match facts.private {
            // Nothing is made for what is about to go.
            None if is_leaving(facts) => return Ok(()),
            Some(_) if is_leaving(facts) => {}
            _ => self.tools.confirm(facts.service, true).await?,
        }
        let done = match facts.private {
            Some(_) => self.tools.hand.replace(&**wanted).await.map(Some),
            None => self.tools.hand.create(&**wanted).await,
        };
        // One that is there without being seen is looked at when the watch shows it.
        let unseen = || Error::Replaced(Key::of(&**wanted));
        done?.map(drop).ok_or_else(unseen)
    }

    async fn slices(&self, facts: &Facts<'_>, slices: &Slices) -> Result<(), Error> {
        match slices {
            Slices::Leave => {}
            Slices::Remove => {
                for slice in &facts.slices {
                    self.tools.hand.remove(*slice, None).await?;
                }
            }
            Slices::Want(wanted) => {
                let live = &facts.slices;
                for slice in wanted.iter().filter(|slice| !live.contains(slice)) {
                    // For what is about to go none is made. Those that are there follow the
                    // resolvers until pods answer.
                    match is_leaving(facts) {
                        true if slice.resource_version().is_none() => continue,
                        true => {}
                        false => self.tools.confirm(facts.service, true).await?,
                    }
                    let written = self.put(slice).await?;
                    let _ = self.known.ours.shows_written(&written, ECHO).await;
                }
            }
        }
        Ok(())
    }

    /// Takes away the slice of that name, whatever its labels: one of KubeElasti has none of ours and
    /// no owner, so it would lead to resolvers for ever.
    async fn sweep(&self, service: &ElastiService) -> Result<(), Error> {
        let name = names::resolver_slice(&service.spec.service);
        let hand = &self.tools.hand;
        let found: Option<EndpointSlice> = hand.find(&beside(service, &name)).await?;
        match found {
            Some(found) => hand.remove(&found, None).await,
            None => Ok(()),
        }
    }

    /// Makes the slice, or makes one of that name into it: one of KubeElasti has none of our labels,
    /// so no watch of ours shows it.
    async fn put(&self, slice: &EndpointSlice) -> Result<EndpointSlice, Error> {
        let hand = &self.tools.hand;
        if slice.resource_version().is_some() {
            return hand.replace(slice).await;
        }
        if let Some(made) = hand.create(slice).await? {
            return Ok(made);
        }
        let key = Key::of(slice);
        let live: Option<EndpointSlice> = hand.find(&key).await?;
        let live = live.ok_or(Error::Replaced(key))?;
        let metadata = ObjectMeta {
            labels: slice.metadata.labels.clone(),
            owner_references: slice.metadata.owner_references.clone(),
            ..live.metadata
        };
        let slice = EndpointSlice {
            metadata,
            ..slice.clone()
        };
        hand.replace(&slice).await
    }

    /// What slept before is as it was: KEDA goes on, so that it scales what it finds running.
    async fn restore(
        &self,
        facts: &Facts<'_>,
        restore: Restore,
        kind: Option<&Kind>,
    ) -> Result<(), Error> {
        let Some(former) = &facts.former else {
            return Ok(());
        };
        if let (true, Keda::Found { seen, .. }) = (restore.resume, &former.keda) {
            target::switch(&self.tools.hand, seen, false).await?;
        }
        let (Some(replicas), Some(kind)) = (restore.replicas, kind) else {
            return Ok(());
        };
        let unchanged = false;
        let scale = Scale {
            replicas,
            unchanged,
        };
        self.scale(facts, &former.target, scale, kind).await
    }

    async fn scale(
        &self,
        facts: &Facts<'_>,
        target: &Target,
        scale: Scale,
        kind: &Kind,
    ) -> Result<(), Error> {
        let Target::Scaled { seen, .. } = target else {
            return Ok(());
        };
        let version = seen.resource_version.clone();
        let seen = ObjectMeta {
            resource_version: version.filter(|_| scale.unchanged),
            ..(**seen).clone()
        };
        let done = target::scale(&self.tools.hand, kind, &seen, scale.replicas).await;
        if let Err(error @ Error::Refused { .. }) = &done {
            let message = format!("it could not be scaled to {}: {error}", scale.replicas);
            let note = Note::warning("FailedToScale", message);
            self.tools.tell(facts.service, &note).await;
        }
        done
    }

    /// Takes away what was made for a Service that is no longer the one named.
    async fn tidy(&self, service: &ElastiService) -> Result<(), Error> {
        let (services, slices) = self.known.leftovers(service);
        for slice in slices {
            self.tools.hand.remove(&*slice, None).await?;
        }
        for private in services {
            self.tools.hand.remove(&*private, None).await?;
        }
        Ok(())
    }
}

fn is_leaving(facts: &Facts<'_>) -> bool {
    facts.service.metadata.deletion_timestamp.is_some()
}
