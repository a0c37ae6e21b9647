//! `neap idle uninstall`: wakes all services and deletes everything that was made for them.

use std::{io::Write, time::Duration};

use k8s_openapi::{
    api::core::v1::Namespace,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{CustomResourceExt, ResourceExt, api::ApiResource};
use neap_idle::{
    account::{State, account},
    api::{ElastiService, annotations::OFF},
    target::{self, KindLookup, Target},
};
use neap_kit::{apply::ResourceKind, key::Key, why::chain};
use serde_json::{Value, json};

use super::{
    UninstallOptions,
    change::{write_failed, writer},
    cluster_scope::ClusterScope,
};
use crate::{
    exit::{Exit, Failure},
    inspect::print,
    symbols::Symbols,
};

const FINAL_TEXT: &str = "\
Operator and resolver have nothing to do now. Remove them the way they were installed:
  helm uninstall elasti -n elasti    or    kubectl delete -k deploy/idle/kustomize
Those of a `neap up` end with it; `neap up --without-idle` starts none, and any other start creates the\ndefinition again.";

/// The time between two reads while the command waits.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

pub(super) async fn run(
    options: &UninstallOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let scope = ClusterScope {
        namespace: None,
        ..ClusterScope::named(&options.cluster, None).await?
    };
    let services = scope.services().await?;
    if !options.yes {
        return Err(unconfirmed(&scope, &services));
    }
    // A running operator would create the ElastiServices of annotated objects again.
    let operator_namespace = &options.operator_namespace;
    set_off(&scope, operator_namespace, &json!("true")).await?;
    delete(&scope, &services).await?;
    wait_until_gone(&scope, options.wait).await?;
    let kinds = KindLookup::default();
    for service in &services {
        let result = result(&scope, &kinds, service).await;
        let line = format!("{} {} {result}", symbols.done, Key::of(service));
        print::text(out, &line)?;
    }
    delete_definition(&scope).await?;
    // No ElastiService can be created any more, and a later installation has to be switched on.
    set_off(&scope, operator_namespace, &Value::Null).await?;
    let line = format!(
        "{} the definition of ElastiServices is deleted",
        symbols.done
    );
    print::text(out, &line)?;
    print::text(out, FINAL_TEXT)
}

/// The result for one service, by the scale of its workload.
async fn result(scope: &ClusterScope, kinds: &KindLookup, service: &ElastiService) -> String {
    let named = &service.spec.scale_target_ref;
    let client = &scope.cluster.client;
    let key = Key::new(&service.namespace().unwrap_or_default(), &named.name);
    let target = match kinds.of(client, named).await {
        Ok(kind) => target::read(client, &kind, &key).await.0,
        Err(unknown) if unknown.is_definite() => Target::Missing,
        Err(_) => Target::Unknown,
    };
    let what = format!("{} {}", named.kind, named.name);
    match target {
        Target::Scaled { replicas: 0, .. } => {
            format!("is restored; {what} has 0 replicas, scale it up if it has to run")
        }
        Target::Scaled { replicas, .. } => {
            let status = service.status.as_ref();
            match status.and_then(|status| status.not_ready.as_ref()) {
                Some(it) => format!(
                    "is restored; {what} has {replicas} replicas, and no pod was ready: {}",
                    it.message
                ),
                None => "is awake and restored".to_owned(),
            }
        }
        Target::Missing => format!("is restored; there is no {what}"),
        Target::Unknown => {
            format!("is restored; the API server did not return the scale of {what}")
        }
    }
}

fn unconfirmed(scope: &ClusterScope, services: &[ElastiService]) -> Failure {
    let now = scope.clock.now();
    let asleep = services.iter().map(|one| account(one, now).state);
    let asleep = asleep.filter(|state| *state == State::Asleep).count();
    let count = services.len();
    let s = if count == 1 { "" } else { "s" };
    let why =
        format!("{count} ElastiService{s} would be deleted, and {asleep} of them woken before");
    Failure::new("NT-IDLE-0011", Exit::Refused, "nothing was done", &why)
        .remedy("neap idle uninstall --yes does it")
}

/// Sets the annotation that keeps all services awake. Without a namespace of an operator nothing is set.
async fn set_off(
    scope: &ClusterScope,
    operator_namespace: &str,
    off: &Value,
) -> Result<(), Failure> {
    let (writer, key) = (writer(scope), Key::new("", operator_namespace));
    let failed = |error| {
        let what = format!("Namespace {operator_namespace} cannot be changed");
        Failure::new("NT-IDLE-0008", Exit::Failed, &what, &chain(&error))
            .remedy("check your rights: kubectl auth can-i patch namespaces")
    };
    let found = writer.find::<Namespace>(&key).await.map_err(failed)?;
    let Some(mut metadata) = found.map(|found| found.metadata) else {
        return Ok(());
    };
    // Other changes since it was read do not matter.
    metadata.resource_version = None;
    let kind = ResourceKind {
        resource: ApiResource::erase::<Namespace>(&()),
        namespaced: false,
    };
    let change = json!({"metadata": {"annotations": {OFF: off}}});
    let written = writer.merge(&kind, &metadata, None, change).await;
    written.map(drop).map_err(failed)
}

/// Deletes ElastiServices. Each goes once the operator has woken its workload.
async fn delete(scope: &ClusterScope, services: &[ElastiService]) -> Result<(), Failure> {
    let writer = writer(scope);
    let remaining = services.iter();
    for service in remaining.filter(|it| it.metadata.deletion_timestamp.is_none()) {
        let removed = writer.remove(service, None).await;
        removed.map_err(|error| write_failed(&Key::of(service), &error))?;
    }
    Ok(())
}

async fn wait_until_gone(scope: &ClusterScope, limit: Duration) -> Result<(), Failure> {
    let deadline = scope.clock.uptime() + limit;
    loop {
        let left = scope.services().await?;
        let Some(first) = left.first() else {
            return Ok(());
        };
        // One may have been created before the operator read the annotation.
        delete(scope, &left).await?;
        if scope.clock.uptime() >= deadline {
            let what = format!("{} are not restored after {limit:?}", left.len());
            let name = first.name_any();
            let namespace = first.namespace().unwrap_or_default();
            let why = format!("{namespace}/{name} still waits for the operator");
            return Err(
                Failure::new("NT-IDLE-0009", Exit::TimedOut, &what, &why).remedy(
                    "check whether operator and resolver run with neap check idle, and try again",
                ),
            );
        }
        scope.clock.sleep(POLL_INTERVAL).await;
    }
}

async fn delete_definition(scope: &ClusterScope) -> Result<(), Failure> {
    let writer = writer(scope);
    let key = Key::of(&ElastiService::crd());
    let found = writer.find::<CustomResourceDefinition>(&key).await;
    let failed = |error| write_failed(&key, &error);
    if let Some(found) = found.map_err(failed)? {
        writer.remove(&found, None).await.map_err(failed)?;
    }
    Ok(())
}
