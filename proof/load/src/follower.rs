//! A process with one controller: the cost of watching, and of a change.
//!
//! It reads commands from standard input, one word per line, and answers each with a line.

mod mirror;

use std::{
    fmt,
    future::{Future, Ready, ready},
    path::Path,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::{Context, Result, bail};
use http::{Request, Uri};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, Resource,
    client::{Body, ClientBuilder},
    core::NamespaceResourceScope,
};
use neap_kit::{
    apply::Writer,
    clock::Clock,
    controller::{Controller, ControllerOptions, Outcome},
    key::Key,
    lease::Leadership,
    process::Process,
    telemetry::{CountCalls, Telemetry},
    watch::{Cache, Metadata, Selection, Watches},
};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::task::{JoinSet, spawn_blocking};
use tokio_util::sync::CancellationToken;
use tower::util::MapRequestLayer;

use self::mirror::Mirror;
use crate::{leaders::candidate, objects::NAMESPACE};

/// Timeout of each watch, so that it soon learns that its version has expired.
const REOPEN: &str = "timeoutSeconds=3";

/// What the controller does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowerMode {
    /// It watches ConfigMaps and has nothing to write.
    Whole,
    /// The same with their metadata only.
    Metadata,
    /// It writes once for each change.
    Write,
}

/// Watches the ConfigMaps of the load until its input ends. `respond` receives the answers.
pub async fn follow(kubeconfig: &Path, mode: FollowerMode, respond: impl Fn(String)) -> Result<()> {
    match mode {
        FollowerMode::Whole => run_controller(kubeconfig, read_only::<ConfigMap>, respond).await,
        FollowerMode::Metadata => {
            run_controller(kubeconfig, read_only::<Metadata<ConfigMap>>, respond).await
        }
        FollowerMode::Write => run_controller(kubeconfig, write, respond).await,
    }
}

/// A reconcile that reads an object, and has nothing to write.
fn read_only<K>(cache: Cache<K>, _: Writer) -> impl Fn(Key) -> Ready<Result<Outcome>> + use<K>
where
    K: Resource + Send + Sync + 'static,
{
    move |key| {
        ready(Ok(match cache.get(&key) {
            Some(_) => Outcome::Done,
            None => Outcome::Gone,
        }))
    }
}

fn write(cache: Cache<ConfigMap>, writer: Writer) -> impl Fn(Key) -> ReconcileFuture {
    let mirror = Mirror { cache, writer };
    move |key| {
        let mirror = mirror.clone();
        Box::pin(async move { mirror.reconcile(&key).await })
    }
}

type ReconcileFuture = Pin<Box<dyn Future<Output = Result<Outcome>> + Send>>;

async fn run_controller<K, R, F>(
    kubeconfig: &Path,
    reconcile: impl FnOnce(Cache<K>, Writer) -> R,
    respond: impl Fn(String),
) -> Result<()>
where
    R: Fn(Key) -> F + Send + 'static,
    F: Future<Output = Result<Outcome>> + Send + 'static,
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + fmt::Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static,
{
    let clock = Clock::system();
    let process = Process::default();
    let expired = Arc::new(AtomicBool::new(false));
    let client = client(kubeconfig, process.telemetry(), clock, expired.clone()).await?;
    let (watches, service) = Watches::in_process(clock, process.clone());
    let api: Api<K> = Api::namespaced(client.clone(), NAMESPACE);
    let cache: Cache<K> = watches.cache(api, Selection::default())?;
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(service.run(stop.clone()));
    let controller = Controller::new(ControllerOptions::new("follower"), clock);
    let controller = controller.with_telemetry(process.telemetry().clone());
    let enqueuer = controller.enqueuer();
    cache.subscribe(move |change| enqueuer.enqueue(change.key()));
    let writer = Writer::new(
        client,
        "follower",
        Leadership::without_election(clock),
        clock,
    )
    .with_telemetry(process.telemetry().clone());
    let (known, reconcile) = (cache.clone(), reconcile(cache.clone(), writer));
    let (known, ends) = (async move { known.synced().await }, stop.clone());
    tasks.spawn(controller.run_when(known, reconcile, ends));
    while let Some(read_command) = spawn_blocking(read_command).await?? {
        match read_command.as_str() {
            "sync" => {
                cache.synced().await;
                respond(json!({"took": clock.uptime().as_secs_f64()}).to_string());
            }
            "report" => respond(report(process.telemetry())),
            "expire" => {
                expired.store(true, Ordering::Release);
                respond("{}".to_owned());
            }
            other => bail!("unknown command {other:?}"),
        }
    }
    stop.cancel();
    while let Some(ended) = tasks.join_next().await {
        ended?;
    }
    Ok(())
}

/// The next line of the input.
fn read_command() -> Result<Option<String>> {
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line)?;
    Ok((read > 0).then(|| line.trim_end().to_owned()))
}

/// A client that counts its calls. Once `expired` is set, its next watch requests a version that
/// has long expired.
async fn client(
    kubeconfig: &Path,
    telemetry: &Telemetry,
    clock: Clock,
    expired: Arc<AtomicBool>,
) -> Result<Client> {
    let config = candidate::config(kubeconfig).await?;
    let calls = CountCalls::new(telemetry.clone(), clock);
    let age = MapRequestLayer::new(move |mut request: Request<Body>| {
        let text = request.uri().to_string();
        if text.contains("watch=true")
            && let Ok(aged) = aged(&text, &expired).parse::<Uri>()
        {
            *request.uri_mut() = aged;
        }
        request
    });
    let builder = ClientBuilder::try_from(config)?;
    Ok(builder.with_layer(&calls).with_layer(&age).build())
}

fn aged(uri: &str, expired: &AtomicBool) -> String {
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let parts = query.split('&').map(|part| {
        if part.starts_with("timeoutSeconds=") {
            REOPEN
        } else if part.starts_with("resourceVersion=") && expired.swap(false, Ordering::AcqRel) {
            "resourceVersion=1"
        } else {
            part
        }
    });
    let parts: Vec<_> = parts.collect();
    format!("{path}?{}", parts.join("&"))
}

fn report(telemetry: &Telemetry) -> String {
    let text = telemetry.text();
    let sum = |name: &str, part: &str| -> f64 {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let lines = lines.filter(|line| line.starts_with(name) && line.contains(part));
        let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        values.sum()
    };
    json!({
        "listed": sum("neaptide_watch_events", r#"event="listed""#),
        "applied": sum("neaptide_watch_events", r#"event="applied""#),
        "reconciles": sum("neaptide_reconciles", ""),
        "writes": sum("neaptide_writes", ""),
        "calls": sum("neaptide_api_calls", ""),
        "reopened": sum("neaptide_api_calls", r#"verb="watch""#),
        "read": sum("neaptide_api_calls", r#"verb="get""#) + sum("neaptide_api_calls", r#"verb="list""#),
    })
    .to_string()
}

/// A number from an answer.
pub(crate) fn number(answer: &str, key: &str) -> Result<f64> {
    let answer: serde_json::Value = serde_json::from_str(answer)?;
    answer[key]
        .as_f64()
        .with_context(|| format!("no {key} in {answer}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_asks_for_what_is_gone_once() {
        let expired = AtomicBool::new(true);
        let uri = "/c?watch=true&timeoutSeconds=290&resourceVersion=77";
        let gone = aged(uri, &expired);
        assert_eq!(gone, "/c?watch=true&timeoutSeconds=3&resourceVersion=1");
        let next = aged(uri, &expired);
        assert_eq!(next, "/c?watch=true&timeoutSeconds=3&resourceVersion=77");
    }
}
