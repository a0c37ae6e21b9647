//! A process with one controller of ours that has nothing to write: what watching costs.
//!
//! It is told what to do on its standard input, a word a line, and answers each with a line.

use std::{
    path::Path,
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
    clock::Clock,
    controller::{Controller, Options, Outcome},
    key::Key,
    process::Process,
    telemetry::{CountCalls, Telemetry},
    watch::{Cache, Lenient, Metadata, Selection, Watches},
};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::task::{JoinSet, spawn_blocking};
use tokio_util::sync::CancellationToken;
use tower::util::MapRequestLayer;

use crate::{leaders::contestant, objects::NAMESPACE};

/// How often a watch is opened anew, so that one soon hears that its place has expired.
const REOPEN: &str = "timeoutSeconds=3";

/// Follows the ConfigMaps of the load, whole or their metadata alone, until its input ends. `tell`
/// is given the answers.
pub async fn follow(kubeconfig: &Path, metadata: bool, tell: impl Fn(String)) -> Result<()> {
    if metadata {
        work::<Metadata<ConfigMap>>(kubeconfig, tell).await
    } else {
        work::<ConfigMap>(kubeconfig, tell).await
    }
}

async fn work<K>(kubeconfig: &Path, tell: impl Fn(String)) -> Result<()>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
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
    let api: Api<Lenient<K>> = Api::namespaced(client, NAMESPACE);
    let cache: Cache<K> = watches.of(api, Selection::default())?;
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(service.run(stop.clone()));
    let controller = Controller::new(Options::new("follower"), clock);
    let controller = controller.counted_by(process.telemetry().clone());
    let trigger = controller.trigger();
    cache.follow(move |change| trigger.changed(change.key()));
    tasks.spawn(run(controller, cache.clone(), stop.clone()));
    while let Some(word) = spawn_blocking(word).await?? {
        match word.as_str() {
            "sync" => {
                cache.synced().await;
                tell(json!({"took": clock.uptime().as_secs_f64()}).to_string());
            }
            "report" => tell(report(process.telemetry())),
            "expire" => {
                expired.store(true, Ordering::Release);
                tell("{}".to_owned());
            }
            other => bail!("what is {other:?}?"),
        }
    }
    stop.cancel();
    while let Some(ended) = tasks.join_next().await {
        ended?;
    }
    Ok(())
}

/// The next line of the input.
fn word() -> Result<Option<String>> {
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line)?;
    Ok((read > 0).then(|| line.trim_end().to_owned()))
}

async fn run<K>(controller: Controller<Key>, cache: Cache<K>, stop: CancellationToken)
where
    K: Resource + Send + Sync + 'static,
{
    let known = cache.clone();
    let reconcile = move |key: Key| {
        let found = cache.get(&key).is_some();
        async move {
            Ok::<_, std::convert::Infallible>(if found {
                Outcome::Settled
            } else {
                Outcome::Gone
            })
        }
    };
    controller
        .run_once_known(async move { known.synced().await }, reconcile, stop)
        .await;
}

/// A client whose calls are counted, and whose next watch asks for what is long gone once it has
/// `expired`.
async fn client(
    kubeconfig: &Path,
    telemetry: &Telemetry,
    clock: Clock,
    expired: Arc<AtomicBool>,
) -> Result<Client> {
    let config = contestant::config(kubeconfig).await?;
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
        "calls": sum("neaptide_api_calls", ""),
        "reopened": sum("neaptide_api_calls", r#"verb="watch""#),
    })
    .to_string()
}

/// One answer as numbers.
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
