//! `neap idle uninstall`: nothing is left asleep, and nothing is left behind.

use std::{io::Write, time::Duration};

use k8s_openapi::{
    api::core::v1::Namespace,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{CustomResourceExt, ResourceExt, api::ApiResource};
use neap_idle::{
    account::{State, account},
    api::ElastiService,
    service::facts::OFF,
    target::{self, Kinds, Target},
};
use neap_kit::{apply::Kind, key::Key, why::chain};
use serde_json::{Value, json};

use super::{
    change::{hand, unwritten},
    place::Place,
};
use crate::{
    ask::print,
    cli::UninstallOptions,
    exit::{Exit, Failure},
    symbols::Symbols,
};

const LAST: &str = "\
Operator and resolver are idle now. Remove them as they were installed:
  helm uninstall elasti -n elasti    or    kubectl delete -k deploy/idle/kustomize
Those of a `neap up` go with it; `neap up --without-idle` starts none, any other one makes the definition again.";

/// So often one looks while one waits.
const LOOK: Duration = Duration::from_millis(500);

pub(super) async fn run(
    options: &UninstallOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let place = Place {
        namespace: None,
        ..Place::named(&options.cluster, None).await?
    };
    let services = place.services().await?;
    if !options.yes {
        return Err(unconfirmed(&place, &services));
    }
    // An operator that is still there would make again what annotations ask for.
    let home = &options.operator_namespace;
    switch(&place, home, &json!("true")).await?;
    remove(&place, &services).await?;
    gone(&place, options.wait).await?;
    let kinds = Kinds::default();
    for service in &services {
        let left = left(&place, &kinds, service).await;
        let line = format!("{} {} {left}", symbols.done, Key::of(service));
        print::text(out, &line)?;
    }
    undefine(&place).await?;
    // None can be made any more, and whoever installs it again wants it on.
    switch(&place, home, &Value::Null).await?;
    let line = format!("{} the definition of ElastiServices is gone", symbols.done);
    print::text(out, &line)?;
    print::text(out, LAST)
}

/// How it is left, by what runs behind it now.
async fn left(place: &Place, kinds: &Kinds, service: &ElastiService) -> String {
    let named = &service.spec.scale_target_ref;
    let client = &place.cluster.client;
    let key = Key::new(&service.namespace().unwrap_or_default(), &named.name);
    let target = match kinds.of(client, named).await {
        Ok(kind) => target::look(client, &kind, &key).await.0,
        Err(unknown) if unknown.is_answered() => Target::Missing,
        Err(_) => Target::Unknown,
    };
    let what = format!("{} {}", named.kind, named.name);
    match target {
        Target::Scaled { replicas: 0, .. } => {
            format!("is restored; {what} has 0 replicas, scale it up if it is to run")
        }
        Target::Scaled { .. } => "is awake and restored".to_owned(),
        Target::Missing => format!("is restored; there is no {what}"),
        Target::Unknown => format!("is restored; the server does not say whether {what} runs"),
    }
}

fn unconfirmed(place: &Place, services: &[ElastiService]) -> Failure {
    let now = place.clock.now();
    let asleep = services.iter().map(|one| account(one, now).state);
    let asleep = asleep.filter(|state| *state == State::Asleep).count();
    let count = services.len();
    let s = if count == 1 { "" } else { "s" };
    let why =
        format!("{count} ElastiService{s} would be deleted, and {asleep} that sleep woken before");
    Failure::new("NT-IDLE-0011", Exit::Refused, "nothing was done", &why)
        .remedy("neap idle uninstall --yes does it")
}

/// Says for everything there is whether it may sleep. Where there is no operator nobody has to be told.
async fn switch(place: &Place, home: &str, off: &Value) -> Result<(), Failure> {
    let (hand, key) = (hand(place), Key::new("", home));
    let failed = |error| {
        let what = format!("Namespace {home} cannot be changed");
        Failure::new("NT-IDLE-0008", Exit::Failed, &what, &chain(&error))
            .remedy("see whether you may: kubectl auth can-i patch namespaces")
    };
    let found = hand.find::<Namespace>(&key).await.map_err(failed)?;
    let Some(mut seen) = found.map(|found| found.metadata) else {
        return Ok(());
    };
    // What else was changed since it was read does not matter.
    seen.resource_version = None;
    let kind = Kind {
        resource: ApiResource::erase::<Namespace>(&()),
        namespaced: false,
    };
    let change = json!({"metadata": {"annotations": {OFF: off}}});
    let written = hand.merge(&kind, &seen, None, change).await;
    written.map(drop).map_err(failed)
}

/// Each of them goes once the operator has woken and restored what it stands for.
async fn remove(place: &Place, services: &[ElastiService]) -> Result<(), Failure> {
    let hand = hand(place);
    let there = services.iter();
    for service in there.filter(|it| it.metadata.deletion_timestamp.is_none()) {
        let removed = hand.remove(service, None).await;
        removed.map_err(|error| unwritten(&Key::of(service), &error))?;
    }
    Ok(())
}

async fn gone(place: &Place, limit: Duration) -> Result<(), Failure> {
    let deadline = place.clock.uptime() + limit;
    loop {
        let left = place.services().await?;
        let Some(first) = left.first() else {
            return Ok(());
        };
        // One may have been made before the operator knew.
        remove(place, &left).await?;
        if place.clock.uptime() >= deadline {
            let what = format!("{} are not restored after {limit:?}", left.len());
            let name = first.name_any();
            let namespace = first.namespace().unwrap_or_default();
            let why = format!("{namespace}/{name} still waits for the operator");
            return Err(
                Failure::new("NT-IDLE-0009", Exit::TimedOut, &what, &why).remedy(
                    "see whether operator and resolver run: neap check idle; then do it again",
                ),
            );
        }
        place.clock.sleep(LOOK).await;
    }
}

async fn undefine(place: &Place) -> Result<(), Failure> {
    let hand = hand(place);
    let key = Key::of(&ElastiService::crd());
    let found = hand.find::<CustomResourceDefinition>(&key).await;
    let failed = |error| unwritten(&key, &error);
    if let Some(found) = found.map_err(failed)? {
        hand.remove(&found, None).await.map_err(failed)?;
    }
    Ok(())
}
