//! `neap farm queue`, `workers` and `match`: what schedulers say.

use std::{fmt::Write as _, io::Write};

use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api,
    api::{ApiResource, DynamicObject},
};
use neap_farm::{
    api::{BuildbarnWorkerSpec, PlatformProperty},
    farm::{Component, ComponentKind, pool_queue::PoolQueue},
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
    cli::Output,
    exit::{Exit, Failure},
    inspect::{print, table::table},
};

const CHECK_ADDRESS: &str = "check the address of --scheduler: it is port 8984 of a scheduler";

/// What a scheduler has queued, or why that is not known, with its name.
type Answer = (String, Result<Vec<QueueState>, Failure>);

pub(super) async fn queues(options: &QueueOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let scope = FarmScope::of(&options.scope).await?;
    let client = GrpcBuildQueue::new(scope.clock);
    let components = scope.components().await?;
    let schedulers: Vec<_> = of_kind(&components, ComponentKind::Scheduler).collect();
    let mut answers: Vec<Answer> = Vec::new();
    if let Some(address) = &options.scheduler {
        let (name, scheduler) = addressed(address, &schedulers);
        let queues = client.queues(address).await;
        answers.push((name, queues.map_err(|error| failed(&error, scheduler))));
    } else {
        for scheduler in schedulers {
            let queues = ask(&scope, &client, scheduler).await;
            answers.push((shown(scheduler), queues));
        }
    }
    show(answers, options.output, out)
}

async fn ask(
    scope: &FarmScope,
    client: &GrpcBuildQueue,
    scheduler: &Component,
) -> Result<Vec<QueueState>, Failure> {
    let address = scope.queue_address(scheduler).await?;
    let queues = client.queues(&address).await;
    queues.map_err(|error| failed(&error, Some(scheduler)))
}

fn shown(scheduler: &Component) -> String {
    format!("{}/{}", scheduler.namespace(), scheduler.name())
}

/// Which scheduler has an address that the user gives: the only one, or an unknown one of several.
fn addressed<'a>(address: &str, schedulers: &[&'a Component]) -> (String, Option<&'a Component>) {
    match schedulers {
        [only] => (shown(only), Some(*only)),
        _ => (address.to_owned(), None),
    }
}

/// Prints what is known, and fails if something is not.
fn show(answers: Vec<Answer>, output: Output, out: &mut dyn Write) -> Result<(), Failure> {
    let mut found: Vec<(String, QueueState)> = Vec::new();
    let mut failures: Vec<(String, Failure)> = Vec::new();
    for (name, answer) in answers {
        match answer {
            Ok(queues) => found.extend(queues.into_iter().map(|queue| (name.clone(), queue))),
            Err(failure) => failures.push((name, failure)),
        }
    }
    if let Some(format) = output.data() {
        let items: Vec<_> = found.iter().map(queue_json).collect();
        let errors = failures.iter();
        let errors: Vec<_> = errors
            .map(|(name, failure)| json!({"scheduler": name, "error": failure.why()}))
            .collect();
        let mut data = json!({"items": items});
        if !errors.is_empty() {
            data["errors"] = errors.into();
        }
        print::data(out, format, "FarmQueueList", &data)?;
    } else if !found.is_empty() || failures.len() > 1 {
        let heads = [
            "SCHEDULER",
            "QUEUED",
            "RUNNING",
            "WORKERS",
            "DRAINS",
            "QUEUE",
        ];
        let mut rows: Vec<_> = found.iter().map(queue_row).collect();
        rows.extend(failures.iter().map(failure_row));
        print::text(out, &table(&heads, &rows))?;
    } else if failures.is_empty() {
        print::text(out, "No scheduler has a queue: no worker has registered.")?;
    }
    match failures.into_iter().next() {
        Some((_, failure)) => Err(failure),
        None => Ok(()),
    }
}

fn failure_row((scheduler, failure): &(String, Failure)) -> Vec<String> {
    let mut row = vec![scheduler.clone()];
    row.extend(["?"; 4].map(str::to_owned));
    row.push(failure.why().to_owned());
    row
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
    let live = deployment(&scope, pool).await?;
    let queue = queue_of(live.as_ref(), &farm, spec);
    let PoolQueue { scheduler, queue } =
        queue.ok_or_else(|| no_such("scheduler for the pool", &options.name, &namespace))?;
    let mut schedulers = of_kind(&farm, ComponentKind::Scheduler);
    let scheduler = schedulers.find(|it| it.name() == scheduler);
    let address = match (&options.queue.scheduler, scheduler) {
        (Some(address), _) => address.clone(),
        (None, Some(scheduler)) => scope.queue_address(scheduler).await?,
        (None, None) => return Err(no_such("scheduler for the pool", &options.name, &namespace)),
    };
    let client = GrpcBuildQueue::new(scope.clock);
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

/// The Deployment of a pool, which records the queue of its workers.
async fn deployment(scope: &FarmScope, pool: &Component) -> Result<Option<DynamicObject>, Failure> {
    let kind = ApiResource::erase::<Deployment>(&());
    let client = scope.cluster.client.clone();
    let deployments: Api<DynamicObject> = Api::namespaced_with(client, pool.namespace(), &kind);
    let found = deployments.get_opt(pool.name()).await;
    let what = format!("the Deployment {}", pool.name());
    found.map_err(|error| scope.cluster.failed(&what, &error))
}

/// The queue in which the workers of a pool are. That of the spec may be the next one.
fn queue_of(
    deployment: Option<&DynamicObject>,
    farm: &[Component],
    spec: &BuildbarnWorkerSpec,
) -> Option<PoolQueue> {
    PoolQueue::of_workers(deployment.and_then(PoolQueue::recorded), farm, spec)
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

fn failed(error: &Error, scheduler: Option<&Component>) -> Failure {
    let exit = match error {
        Error::Unreachable { .. } => Exit::Unreachable,
        Error::Refused { .. } => Exit::Failed,
    };
    let why = error.to_string();
    let what = "the build queue cannot be read";
    let remedy = scheduler.map_or_else(|| CHECK_ADDRESS.to_owned(), remedy);
    Failure::new(error.code().0, exit, what, &why).remedy(remedy)
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

    fn queue(queued: u32) -> QueueState {
        QueueState {
            queued,
            ..QueueState::default()
        }
    }

    #[test]
    fn a_scheduler_that_does_not_answer_hides_no_other() {
        let silent = || Failure::new("NT-FARM-0004", Exit::Unreachable, "it fails", "no route");
        let answers = vec![
            ("a/main".to_owned(), Ok(vec![queue(7)])),
            ("b/main".to_owned(), Err(silent())),
            ("c/main".to_owned(), Ok(vec![queue(9)])),
        ];
        let mut out = Vec::new();
        let failure = show(answers, Output::Text, &mut out).unwrap_err();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<_> = text
            .lines()
            .map(|line| line.split_whitespace().next())
            .collect();
        assert_eq!(lines[1..], ["a/main", "c/main", "b/main"].map(Some));
        assert_eq!(failure.why(), "no route");
        let answers = vec![("b/main".to_owned(), Err(silent()))];
        let mut out = Vec::new();
        assert!(show(answers, Output::Json, &mut out).is_err());
        let data: Value = serde_json::from_slice(&out).unwrap();
        let errors = json!([{"scheduler": "b/main", "error": "no route"}]);
        assert_eq!(data["errors"], errors);
    }

    #[test]
    fn an_address_belongs_to_one_scheduler_at_most() {
        let (one, two) = (scheduler(1), scheduler(1));
        let (name, found) = addressed("host:1", &[&one]);
        assert_eq!((&*name, found.is_some()), ("builds/main", true));
        let (name, found) = addressed("host:1", &[&one, &two]);
        assert_eq!((&*name, found.is_some()), ("host:1", false));
    }

    #[test]
    fn workers_are_looked_for_in_the_queue_that_is_recorded() {
        let recorded =
            r#"{"scheduler":"main","instanceNamePrefix":"former","platform":[],"sizeClass":0}"#;
        let deployment: DynamicObject = serde_json::from_value(json!({
            "metadata": {"name": "linux", "annotations": {"buildbarn.io/queue": recorded}},
        }))
        .unwrap();
        let (farm, spec) = ([scheduler(1)], BuildbarnWorkerSpec::default());
        let prefix = |deployment| {
            let queue = queue_of(deployment, &farm, &spec).unwrap().queue;
            queue.instance_name_prefix
        };
        assert_eq!(prefix(Some(&deployment)), "former");
        assert_eq!(prefix(None), "");
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
