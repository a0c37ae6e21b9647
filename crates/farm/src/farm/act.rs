//! Carries a decision out. It makes no choice.
//!
//! Drains that end are taken from the scheduler before they leave the status, and drains that begin are in
//! the status before the scheduler gets them: a process that stops in between leaves no drain that the
//! status does not name.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    core::v1::ConfigMap,
};
use kube::{Resource, ResourceExt};
use neap_kit::{
    apply::{Error, Object, PlannedChange, ResourceKind},
    builder::Tools,
    event::EventDraft,
    key::Key,
    operation::Operation,
    why::chain,
};

use super::{
    Component,
    decide::{ComponentDecision, Decision, DrainChange},
    facts::{FarmFacts, FarmSources, Reconciled},
    objects::ServiceMonitor,
    refusals::is_final,
};
use crate::api::ComponentStatus;

/// Makes the writes of a decision.
pub(super) async fn act(
    tools: &Tools,
    sources: &FarmSources,
    facts: &FarmFacts,
    decision: Decision,
) -> Result<(), Error> {
    let (add, remove): (Vec<_>, Vec<_>) = decision.drains.iter().partition(|it| it.drained);
    set_drains(sources, facts, &remove).await;
    // The record of a roll-out begins before the roll-out: afterwards nothing shows that it was one.
    for (before, after) in &decision.rollout.updates {
        recorded(tools.update_status(before, after).await)?;
    }
    if let Some(operation) = &decision.rollout.begins {
        begin(tools, operation).await?;
    }
    // A failure of one component keeps neither the others from being written, nor their drains from the
    // scheduler: the bounds of those run from now on.
    let (mut failed, mut written) = (None, BTreeSet::new());
    for component in decision.components {
        let uid = facts.components[component.index].uid();
        match write(tools, sources, facts, component).await {
            Ok(()) => {
                written.insert(uid);
            }
            Err(error) => {
                failed.get_or_insert(error);
            }
        }
    }
    let recorded_drains = add.into_iter().filter(|it| written.contains(&*it.pool));
    let recorded_drains: Vec<_> = recorded_drains.collect();
    set_drains(sources, facts, &recorded_drains).await;
    if let Some(error) = failed {
        return Err(error);
    }
    for object in decision.rollout.forgotten {
        let reason = "the roll-out has ended, and later ones too".to_owned();
        let deletion = PlannedChange::Delete { object, reason };
        recorded(tools.writer.execute_change(deletion).await.map(drop))?;
    }
    Ok(())
}

async fn begin(tools: &Tools, operation: &Operation) -> Result<(), Error> {
    match tools.writer.create(operation).await {
        // The cache does not show it yet.
        Ok(None) => Err(Error::Conflict(Key::of(operation))),
        created => recorded(created.map(drop)),
    }
}

/// A farm is rolled out without a record where the operator may not write one.
fn recorded(written: Result<(), Error>) -> Result<(), Error> {
    match written {
        Err(Error::Refused { key, source }) if is_final(&source) => {
            let error = chain(&*source);
            tracing::warn!(%key, error, "the record of a roll-out is not written");
            Ok(())
        }
        other => other,
    }
}

async fn set_drains(sources: &FarmSources, facts: &FarmFacts, changes: &[&DrainChange]) {
    let namespace = facts.components.first().map_or("", Component::namespace);
    let failures = &sources.drain_failures;
    for change in changes {
        let Some(address) = sources.queue_address(namespace, &change.scheduler) else {
            continue;
        };
        let done = sources
            .queue
            .set_drain(&address, &change.queue, &change.pattern, change.drained)
            .await;
        // It is repeated with the next poll, and the status says that the scheduler does not answer.
        if let Err(error) = done
            && failures.is_news(&address, &error.to_string(), facts.now)
        {
            tracing::warn!(%error, scheduler = change.scheduler, "a drain could not be changed");
        }
    }
}

async fn write(
    tools: &Tools,
    sources: &FarmSources,
    facts: &FarmFacts,
    decision: ComponentDecision,
) -> Result<(), Error> {
    let component = &facts.components[decision.index];
    let Some(object) = sources.object(component) else {
        return Ok(());
    };
    let creates = decision
        .plan
        .changes
        .iter()
        .any(|change| matches!(change, PlannedChange::Create(_)));
    if creates {
        confirm(tools, &object).await?;
    }
    let (mut refused, mut has_config) = (None, true);
    for change in decision.plan.changes {
        if !has_config && needs_config(&change) {
            continue;
        }
        let is_config = *change.kind() == ResourceKind::of::<ConfigMap>();
        let is_monitor = *change.kind() == ResourceKind::of::<ServiceMonitor>();
        tracing::debug!(%change, "write");
        match tools.writer.execute_change(change).await {
            Ok(_) => {}
            // The definition was removed. A farm needs no monitors.
            Err(Error::Refused { key, source }) if is_monitor && is_unserved(&source) => {
                tracing::warn!(%key, "the server does not serve ServiceMonitors any more");
            }
            // The user learns what the server does not accept; the rest is written.
            Err(Error::Refused { key, source }) if is_final(&source) => {
                let error = Error::Refused { key, source };
                let message = chain(&error);
                let known = component.status.conditions.iter();
                let mut known = known.filter(|it| it.type_ == "Ready");
                if !known.any(|it| it.reason == "WriteRefused" && it.message == message) {
                    let event = EventDraft::warning("WriteRefused", message.clone());
                    record(tools, &object, &event).await;
                }
                sources.refusals.add(component, message, tools.clock.now());
                refused = Some(error);
                has_config &= !is_config;
            }
            Err(error) => return Err(error),
        }
    }
    // The next decision knows what was refused, and reports that.
    if let Some(error) = refused {
        return Err(error);
    }
    // A finalizer that was just set has changed the version of the object that the status belongs to.
    if decision.reports {
        update_status(tools, &object, decision.status).await?;
    }
    for event in &decision.events {
        record(tools, &object, event).await;
    }
    for change in decision.plan.cleanup {
        tools.writer.execute_change(change).await?;
    }
    Ok(())
}

fn is_unserved(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Whether pods would wait for ever for a ConfigMap that the API server has refused.
fn needs_config(change: &PlannedChange) -> bool {
    let workloads = [
        ResourceKind::of::<Deployment>(),
        ResourceKind::of::<StatefulSet>(),
    ];
    workloads.contains(change.kind())
}

/// Does something with the object of any kind.
macro_rules! for_kind {
    ($object:expr, $name:ident => $do:expr) => {
        match $object {
            Reconciled::Scheduler($name) => $do,
            Reconciled::Worker($name) => $do,
            Reconciled::Storage($name) => $do,
            Reconciled::Frontend($name) => $do,
            Reconciled::Browser($name) => $do,
        }
    };
}

async fn confirm(tools: &Tools, object: &Reconciled) -> Result<(), Error> {
    for_kind!(object, it => tools.confirm(&**it, true).await)
}

async fn record(tools: &Tools, object: &Reconciled, event: &EventDraft) {
    for_kind!(object, it => tools.record(&**it, event).await);
}

async fn update_status(
    tools: &Tools,
    object: &Reconciled,
    status: ComponentStatus,
) -> Result<(), Error> {
    for_kind!(object, it => replace_status(tools, it, status).await)
}

/// A component whose status can be set.
trait HasStatus: Object + PartialEq {
    fn set_status(&mut self, status: ComponentStatus);
}

macro_rules! has_status {
    ($($type:ident),+) => {
        $(impl HasStatus for crate::api::$type {
            fn set_status(&mut self, status: ComponentStatus) {
                self.status = Some(status);
            }
        })+
    };
}

has_status!(
    BuildbarnScheduler,
    BuildbarnWorker,
    BuildbarnStorage,
    BuildbarnFrontend,
    BuildbarnBrowser
);

async fn replace_status<K: HasStatus + Resource<DynamicType = ()> + ResourceExt>(
    tools: &Tools,
    before: &Arc<K>,
    status: ComponentStatus,
) -> Result<(), Error> {
    let mut after = (**before).clone();
    after.set_status(status);
    tools.update_status(&**before, &after).await
}
