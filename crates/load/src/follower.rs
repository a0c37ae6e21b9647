//! A process with one controller of ours: what watching costs, and what a change does.
//!
//! It is told what to do on its standard input, a word a line, and answers each with a line.

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
    apply::Hand,
    clock::Clock,
    controller::{Controller, Options, Outcome},
    key::Key,
    lease::Leadership,
    process::Process,
    telemetry::{CountCalls, Telemetry},
    watch::{Cache, Lenient, Metadata, Selection, Watches},
};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::task::{JoinSet, spawn_blocking};
use tokio_util::sync::CancellationToken;
use tower::util::MapRequestLayer;

use self::mirror::Mirror;
use crate::{leaders::contestant, objects::NAMESPACE};

/// How often a watch is opened anew, so that one soon hears that its place has expired.
const REOPEN: &str = "timeoutSeconds=3";

/// What the controller is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// It watches ConfigMaps and has nothing to write.
    Whole,
    /// The same with their metadata alone.
    Metadata,
    /// It has something to write for each change.
    Write,
}

/// Follows the ConfigMaps of the load until its input ends. `tell` is given the answers.
pub async fn follow(kubeconfig: &Path, purpose: Purpose, tell: impl Fn(String)) -> Result<()> {
    match purpose {
        Purpose::Whole => work(kubeconfig, look::<ConfigMap>, tell).await,
        Purpose::Metadata => work(kubeconfig, look::<Metadata<ConfigMap>>, tell).await,
        Purpose::Write => work(kubeconfig, write, tell).await,
    }
}

/// Looks at an object, and has nothing to write.
fn look<K>(cache: Cache<K>, _: Hand) -> impl Fn(Key) -> Ready<Result<Outcome>> + use<K>
where
    K: Resource + Send + Sync + 'static,
{
    move |key| {
        ready(Ok(match cache.get(&key) {
            Some(_) => Outcome::Settled,
            None => Outcome::Gone,
        }))
    }
}

fn write(cache: Cache<ConfigMap>, hand: Hand) -> impl Fn(Key) -> Working {
    let mirror = Mirror { cache, hand };
    move |key| {
        let mirror = mirror.clone();
        Box::pin(async move { mirror.reconcile(&key).await })
    }
}

type Working = Pin<Box<dyn Future<Output = Result<Outcome>> + Send>>;

async fn work<K, R, F>(
    kubeconfig: &Path,
    reconcile: impl FnOnce(Cache<K>, Hand) -> R,
    tell: impl Fn(String),
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
    let api: Api<Lenient<K>> = Api::namespaced(client.clone(), NAMESPACE);
    let cache: Cache<K> = watches.of(api, Selection::default())?;
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(service.run(stop.clone()));
    let controller = Controller::new(Options::new("follower"), clock);
    let controller = controller.counted_by(process.telemetry().clone());
    let trigger = controller.trigger();
    cache.follow(move |change| trigger.changed(change.key()));
    let hand = Hand::new(client, "follower", Leadership::alone(clock), clock)
        .counted_by(process.telemetry().clone());
    let (known, reconcile) = (cache.clone(), reconcile(cache.clone(), hand));
    let (known, ends) = (async move { known.synced().await }, stop.clone());
    tasks.spawn(controller.run_once_known(known, reconcile, ends));
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
        "writes": sum("neaptide_writes", ""),
        "calls": sum("neaptide_api_calls", ""),
        "reopened": sum("neaptide_api_calls", r#"verb="watch""#),
        "read": sum("neaptide_api_calls", r#"verb="get""#) + sum("neaptide_api_calls", r#"verb="list""#),
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
