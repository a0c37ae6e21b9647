//! `neap farm queue`, `workers` and `match`: what schedulers say.

use std::{fmt::Write as _, io::Write};

use neap_farm::{
    api::PlatformProperty,
    farm::{Component, ComponentKind, settings},
    platform::{QueueName, nearest_pool, parse_refusal},
    queue::{BuildQueue, Error, GrpcBuildQueue, QueueState},
};
use neap_kit::why::Coded;
use serde_json::{Value, json};

use super::{
    MatchOptions, QueueOptions, WorkersOptions,
    scope::{FarmScope, no_such, of_kind},
};
use crate::{
    exit::{Exit, Failure},
    inspect::{print, table::table},
};

pub(super) async fn queues(options: &QueueOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let scope = FarmScope::of(&options.scope).await?;
    let client = GrpcBuildQueue::new(scope.clock);
    let mut found: Vec<(String, QueueState)> = Vec::new();
    let components = scope.components().await?;
    for scheduler in of_kind(&components, ComponentKind::Scheduler) {
        let address = match &options.scheduler {
            Some(address) => address.clone(),
            None => scope.queue_address(scheduler).await?,
        };
        let queues = client
            .queues(&address)
            .await
            .map_err(|error| failed(&error, scheduler))?;
        let name = format!("{}/{}", scheduler.namespace(), scheduler.name());
        found.extend(queues.into_iter().map(|queue| (name.clone(), queue)));
    }
    if let Some(format) = options.output.data() {
        let items: Vec<_> = found.iter().map(queue_json).collect();
        return print::data(out, format, "FarmQueueList", &json!({"items": items}));
    }
    if found.is_empty() {
        return print::text(out, "No scheduler has a queue: no worker has registered.");
    }
    let heads = [
        "SCHEDULER",
        "QUEUED",
        "RUNNING",
        "WORKERS",
        "DRAINS",
        "QUEUE",
    ];
    let rows: Vec<_> = found.iter().map(queue_row).collect();
    print::text(out, &table(&heads, &rows))
}

fn queue_row((scheduler, queue): &(String, QueueState)) -> Vec<String> {
    vec![
        scheduler.clone(),
        queue.queued.to_string(),
        queue.executing.to_string(),
        queue.workers.to_string(),
        queue.drains.to_string(),
        queue.name.to_string(),
    ]
}

fn queue_json((scheduler, queue): &(String, QueueState)) -> Value {
    json!({
        "scheduler": scheduler,
        "queued": queue.queued,
        "executing": queue.executing,
        "workers": queue.workers,
        "drains": queue.drains,
        "instanceNamePrefix": queue.name.instance_name_prefix,
        "platform": queue.name.platform,
        "sizeClass": queue.name.size_class,
    })
}

pub(super) async fn workers(options: &WorkersOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let scope = FarmScope::of(&options.queue.scope).await?;
    let namespace = scope.namespace.clone().unwrap_or_default();
    let components = scope.components().await?;
    let missing = || no_such("pool", &options.name, &namespace);
    let mut pools = of_kind(&components, ComponentKind::Worker);
    let pool = pools
        .find(|it| it.name() == options.name)
        .ok_or_else(missing)?;
    let spec = pool.worker().ok_or_else(missing)?;
    let farm: Vec<Component> = components
        .iter()
        .filter(|it| it.farm() == pool.farm() && it.namespace() == pool.namespace())
        .cloned()
        .collect();
    let scheduler = settings::scheduler_of(&farm, spec);
    let scheduler =
        scheduler.ok_or_else(|| no_such("scheduler for the pool", &options.name, &namespace))?;
    let address = match &options.queue.scheduler {
        Some(address) => address.clone(),
        None => scope.queue_address(scheduler).await?,
    };
    let client = GrpcBuildQueue::new(scope.clock);
    let queue = QueueName::of(spec);
    let workers = client.workers(&address, &queue).await;
    let workers = workers.map_err(|error| failed(&error, scheduler))?;
    if let Some(format) = options.queue.output.data() {
        let items: Vec<_> = workers
            .iter()
            .map(|it| json!({"id": it.id, "executing": it.executing, "drained": it.drained}))
            .collect();
        return print::data(out, format, "FarmWorkerList", &json!({"items": items}));
    }
    let heads = ["WORKER", "RUNS", "DRAINED"];
    let rows: Vec<_> = workers
        .iter()
        .map(|worker| {
            let id: Vec<_> = worker
                .id
                .iter()
                .map(|(key, value)| format!("{key}={value}"))
                .collect();
            let runs = if worker.executing { "an action" } else { "-" };
            let drained = if worker.drained { "yes" } else { "-" };
            vec![id.join(" "), runs.to_owned(), drained.to_owned()]
        })
        .collect();
    print::text(out, &table(&heads, &rows))
}

pub(super) async fn nearest(options: &MatchOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let (instance, platform) = wanted(options)?;
    let scope = FarmScope::of(&options.scope).await?;
    let pools: Vec<_> = scope
        .pools()
        .await?
        .iter()
        .filter_map(|pool| {
            let name = format!("{}/{}", pool.namespace(), pool.name());
            Some((name, QueueName::of(pool.worker()?)))
        })
        .collect();
    let Some(nearest) = nearest_pool(&instance, &platform, &pools) else {
        return Err(no_pool(scope.namespace.as_deref()));
    };
    if nearest.differences.is_empty() {
        return print::text(out, &format!("It runs on the pool {}.", nearest.pool));
    }
    let mut text = format!("No pool matches. The nearest is {}:\n", nearest.pool);
    for difference in &nearest.differences {
        let _ = writeln!(text, "  {difference}");
    }
    text.push_str(
        "Set the same properties on the action (exec_properties) and on the pool (spec.platform).",
    );
    print::text(out, &text)
}

fn wanted(options: &MatchOptions) -> Result<(String, Vec<PlatformProperty>), Failure> {
    if let Some(message) = &options.message {
        return parse_refusal(message).ok_or_else(|| {
            let why = "it contains no platform {…}";
            Failure::new(
                "NT-FARM-0003",
                Exit::Usage,
                "the message cannot be understood",
                why,
            )
            .remedy("pass the whole message of Bazel, or --instance and --platform")
        });
    }
    let properties = options.platform.iter().map(|property| {
        let (name, value) = property.split_once('=').unwrap_or((property, ""));
        PlatformProperty::new(name, value)
    });
    Ok((options.instance.clone(), properties.collect()))
}

/// No action runs where there is no pool; the pools may be in another namespace.
fn no_pool(namespace: Option<&str>) -> Failure {
    let (place, remedy) = match namespace {
        Some(namespace) => (
            format!("namespace {namespace} has no BuildbarnWorker"),
            "name the namespace of the farm with -n, or look in all of them with -A",
        ),
        None => (
            "the cluster has no BuildbarnWorker".to_owned(),
            "create a pool, as in docs/farm/your-first-farm.md",
        ),
    };
    let what = "there is no pool of workers";
    Failure::new("NT-FARM-0003", Exit::NotFound, what, &place).remedy(remedy)
}

fn failed(error: &Error, scheduler: &Component) -> Failure {
    let exit = match error {
        Error::Unreachable { .. } => Exit::Unreachable,
        Error::Refused { .. } => Exit::Failed,
    };
    let why = error.to_string();
    let what = "the build queue cannot be read";
    Failure::new(error.code().0, exit, what, &why).remedy(remedy(scheduler))
}

/// A scheduler that does not run is not reached by forwarding its port either.
fn remedy(scheduler: &Component) -> String {
    let (namespace, name) = (scheduler.namespace(), scheduler.name());
    if scheduler.status.ready_replicas == 0 {
        return format!(
            "the scheduler has no ready pod: see neap explain buildbarnscheduler/{name} -n {namespace}"
        );
    }
    "from outside of the cluster, forward port 8984 of the scheduler and pass --scheduler HOST:PORT"
        .to_owned()
}

#[cfg(test)]
mod tests {
    use neap_farm::api::BuildbarnScheduler;

    use super::*;

    fn scheduler(ready: i32) -> Component {
        let object = json!({
            "metadata": {"name": "main", "namespace": "builds"}, "spec": {},
            "status": {"replicas": 1, "readyReplicas": ready},
        });
        let scheduler: BuildbarnScheduler = serde_json::from_value(object).unwrap();
        Component::from(&scheduler)
    }

    #[test]
    fn a_port_is_forwarded_only_to_a_scheduler_that_runs() {
        assert!(remedy(&scheduler(1)).contains("forward port 8984"));
        let stopped = remedy(&scheduler(0));
        assert!(stopped.ends_with("neap explain buildbarnscheduler/main -n builds"));
        assert!(!stopped.contains("forward"));
    }

    #[test]
    fn without_a_pool_the_namespace_is_named() {
        let text = format!("{:?}", no_pool(Some("builds")));
        assert!(
            text.contains("namespace builds has no BuildbarnWorker"),
            "{text}"
        );
        assert!(text.contains("-A"), "{text}");
        assert!(!format!("{:?}", no_pool(None)).contains("-A"));
    }
}
