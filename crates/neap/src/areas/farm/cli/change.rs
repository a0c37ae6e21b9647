//! `neap farm cordon` and `drain`: requests by `spec.cordoned`, which the operator carries out.

use std::{io::Write, time::Duration};

use neap_farm::{api::BuildbarnWorker, farm::Component};
use neap_kit::{
    apply::{self, PlannedChange, ResourceKind, Writer},
    lease::Leadership,
    why::chain,
};
use serde_json::json;

use super::{
    CordonOptions, DrainOptions, PoolOptions,
    scope::{FarmScope, no_such},
};
use crate::{
    exit::{Exit, Failure},
    inspect::print,
    symbols::Symbols,
};

/// The time between two reads while a command waits.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

pub(super) async fn cordon(
    options: &CordonOptions,
    _: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let scope = scope_of(&options.pool).await?;
    set(&scope, &options.pool.name, !options.off).await?;
    let name = &options.pool.name;
    print::text(
        out,
        &if options.off {
            format!("The pool {name} gets actions again.")
        } else {
            format!("The pool {name} gets no new actions; those that run continue.")
        },
    )
}

pub(super) async fn drain(
    options: &DrainOptions,
    _: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let scope = scope_of(&options.pool).await?;
    let name = &options.pool.name;
    set(&scope, name, true).await?;
    let Some(limit) = options.wait else {
        return print::text(out, &format!("The pool {name} gets no new actions."));
    };
    let idle = async {
        loop {
            let pool = read(&scope, name).await?;
            let drains = &pool.status.drains;
            let counted = drains.iter().all(|drain| drain.running == Some(0));
            let known = pool.status.observed_generation == pool.metadata.generation;
            if known && counted && (!drains.is_empty() || pool.status.replicas == 0) {
                return Ok::<_, Failure>(());
            }
            scope.clock.sleep(POLL_INTERVAL).await;
        }
    };
    let Some(idle) = scope.clock.within(limit, idle).await else {
        let what = format!("the pool {name} still runs actions");
        let why = "the time of --wait is over; the pool stays drained";
        return Err(Failure::new("NT-CLI-0007", Exit::TimedOut, &what, why)
            .remedy("see neap farm workers, or wait longer"));
    };
    idle?;
    print::text(out, &format!("The pool {name} is drained: no action runs."))
}

async fn scope_of(options: &PoolOptions) -> Result<FarmScope, Failure> {
    FarmScope::named(&options.cluster, options.namespace.as_deref()).await
}

async fn read(scope: &FarmScope, name: &str) -> Result<Component, Failure> {
    let pools = scope.pools().await?;
    let namespace = scope.namespace.as_deref().unwrap_or_default();
    let pool = pools.into_iter().find(|it| it.name() == name);
    pool.ok_or_else(|| no_such("pool", name, namespace))
}

async fn set(scope: &FarmScope, name: &str, cordoned: bool) -> Result<(), Failure> {
    let pool = read(scope, name).await?;
    let writer = Writer::new(
        scope.cluster.client.clone(),
        "neap-farm",
        Leadership::without_election(scope.clock),
        scope.clock,
    );
    let change = PlannedChange::Merge {
        kind: ResourceKind::of::<BuildbarnWorker>(),
        metadata: Box::new(pool.metadata.clone()),
        subresource: None,
        patch: json!({"spec": {"cordoned": cordoned}}),
        reason: "the user asks for it".to_owned(),
    };
    let written = writer.execute_change(change).await;
    written.map(drop).map_err(|error: apply::Error| {
        Failure::new("NT-KIT-012", Exit::Failed, "the pool cannot be changed", &chain(&error))
            .remedy("run the command again; if the server refuses, ask for the right to patch BuildbarnWorkers")
    })
}
