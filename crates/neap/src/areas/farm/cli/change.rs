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
        return Err(not_drained(&read(&scope, name).await?));
    };
    idle?;
    print::text(out, &format!("The pool {name} is drained: no action runs."))
}

/// What a pool waits for whose actions have not ended in time.
fn not_drained(pool: &Component) -> Failure {
    let (namespace, name) = (pool.namespace(), pool.name());
    let status = &pool.status;
    let condition = |type_: &str| status.conditions.iter().find(|it| it.type_ == type_);
    let silent = condition("Draining").filter(|it| it.reason == "SchedulerDoesNotAnswer");
    let running: u32 = status.drains.iter().filter_map(|it| it.running).sum();
    let pending = |what: &str, why: &str, remedy: &str| {
        Failure::new("NT-CLI-0007", Exit::TimedOut, what, why).remedy(remedy)
    };
    if let Some(condition) = silent {
        let what = format!(
            "the scheduler does not answer, so it is not known whether the pool {name} runs actions"
        );
        let remedy = "see neap farm list and neap explain buildbarnscheduler/NAME; the pool stays drained, \
                      and the operator asks again";
        return Failure::new("NT-FARM-0004", Exit::TimedOut, &what, &condition.message)
            .remedy(remedy);
    }
    if status.observed_generation != pool.metadata.generation {
        let what = format!("the operator has not taken up the drain of the pool {name}");
        let why = "the status of the pool is that of an earlier version of its spec";
        return pending(&what, why, "check that the operator of build farms runs");
    }
    if running == 0 {
        let what = format!("the pool {name} is not drained yet");
        let why = condition("Ready").map_or("its status has no drains", |it| it.message.as_str());
        let remedy = format!("see neap explain buildbarnworker/{name} -n {namespace}");
        return pending(&what, why, &remedy);
    }
    let what = format!("the pool {name} still runs {running} actions");
    let why = "the time of --wait is over; the pool stays drained";
    pending(&what, why, "see neap farm workers, or wait longer")
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

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn waiting_for(status: &Value) -> String {
        let object = json!({
            "metadata": {"name": "linux", "namespace": "builds", "generation": 2}, "spec": {},
            "status": status,
        });
        let pool: BuildbarnWorker = serde_json::from_value(object).unwrap();
        format!("{:?}", not_drained(&Component::from(&pool)))
    }

    fn condition(type_: &str, reason: &str) -> Value {
        json!({
            "type": type_, "status": "True", "reason": reason, "message": "cannot be reached",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    }

    #[test]
    fn a_drain_that_takes_too_long_says_what_it_waits_for() {
        let drain = |running: Value| json!({"pattern": {"pod": "w-0"}, "reason": "Cordon", "running": running});
        let silent = waiting_for(&json!({
            "state": "Reconciling", "observedGeneration": 2, "drains": [drain(json!(null))],
            "conditions": [condition("Draining", "SchedulerDoesNotAnswer")],
        }));
        assert!(silent.contains("NT-FARM-0004"), "{silent}");
        assert!(silent.contains("the scheduler does not answer"), "{silent}");
        assert!(silent.contains("cannot be reached"), "{silent}");
        let unseen = waiting_for(&json!({"state": "Ready", "observedGeneration": 1}));
        assert!(unseen.contains("the operator has not taken up"), "{unseen}");
        let none = waiting_for(&json!({
            "state": "Creating", "observedGeneration": 2,
            "conditions": [condition("Ready", "WaitingForPods")],
        }));
        assert!(none.contains("is not drained yet"), "{none}");
        assert!(none.contains("cannot be reached"), "{none}");
        let busy = waiting_for(&json!({
            "state": "Ready", "observedGeneration": 2, "drains": [drain(json!(3))],
        }));
        assert!(busy.contains("still runs 3 actions"), "{busy}");
        assert!(busy.contains("NT-CLI-0007"), "{busy}");
    }
}
