//! How long a client waits while another one sends the longest lists that the server accepts.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use tokio::{runtime::Builder, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::{Figure, JSON, create, milliseconds, prepare, read, update};
use crate::{
    bulk::{BulkRequest, BulkResult, send_all},
    client::{Client, Connection},
    objects::NAMESPACE,
    stopwatch::Stopwatch,
    subject::{Storage, Subject},
};

/// Objects that the client reads and changes.
const OBJECTS: usize = 200;
/// Bytes of a large body. The server accepts 3 MiB.
const LARGE_BYTES: usize = 1 << 20;
/// Large requests in flight at a time.
const SENDERS: usize = 2;
/// Interval of small requests. They are sent at fixed times, whether or not the one before was answered
/// late, so that a pause of the server counts for all requests that fall into it.
const INTERVAL: Duration = Duration::from_millis(2);

/// A timer fires up to this much late, which is no work of the server.
const TIMER_GRAIN: Duration = Duration::from_millis(2);
/// Requests before those that count.
const WARM_UP: usize = 500;

/// The latency of `count` gets and small patches over one connection, alone and while others send
/// long lists: creates and applies as dry runs, which cost what the writes do.
pub async fn neighbour(subject: &Subject, count: usize) -> Result<Vec<Figure>> {
    let server = subject.start(Storage::Memory).await?;
    let client = server.client();
    prepare(&mut client.connect().await?).await?;
    send_all(client, 1, OBJECTS, create).await?;
    let small = |number: usize| {
        if number.is_multiple_of(4) {
            update(number, OBJECTS)
        } else {
            read(number % OBJECTS)
        }
    };
    // To warm up connections, caches and code.
    send_all(client, 1, WARM_UP, small).await?;
    let large: Arc<[LargeRequest]> = large_requests().into();
    time_large(client, &large).await?;
    let alone = paced(client, count, small).await?;
    let stop = CancellationToken::new();
    let others: Vec<_> = (0..SENDERS)
        .map(|first| send_in_thread(client.clone(), large.clone(), first, stop.clone()))
        .collect();
    let beside = paced(client, count, |number| small(number + 1)).await?;
    stop.cancel();
    for other in others {
        other.await??;
    }
    let large = time_large(client, &large).await?;
    server.stop().await?;
    let (alone, beside) = (alone.percentile(99), beside.percentile(99));
    Ok(vec![
        ("p99 alone", milliseconds(alone)),
        ("p99 beside", milliseconds(beside)),
        ("times", beside.as_secs_f64() / alone.as_secs_f64()),
        ("large", large),
    ])
}

/// Sends `count` requests, one in each interval, and measures from the time at which each was due.
async fn paced(
    client: &Client,
    count: usize,
    request: impl Fn(usize) -> BulkRequest,
) -> Result<BulkResult> {
    let mut connection = client.connect().await?;
    let mut latencies = Vec::with_capacity(count);
    let watch = Stopwatch::start();
    for number in 0..count {
        let due = INTERVAL * u32::try_from(number)?;
        tokio::time::sleep(due.saturating_sub(watch.elapsed())).await;
        let due = due.max(watch.elapsed().min(due + TIMER_GRAIN));
        let BulkRequest {
            method,
            path,
            content_type,
            body,
        } = request(number);
        let answer = connection.send_as(method, &path, content_type, body);
        answer.await?.success().context(path)?;
        latencies.push(watch.elapsed().saturating_sub(due));
    }
    Ok(BulkResult::of(watch.elapsed(), latencies))
}

/// A request with a long list. Its body is made once, and shared.
#[derive(Debug, Clone)]
struct LargeRequest {
    method: Method,
    path: String,
    content_type: &'static str,
    body: Bytes,
}

/// Sends long lists until `stop`, in a thread of its own: their encryption must not delay the small
/// requests of this process.
fn send_in_thread(
    client: Client,
    requests: Arc<[LargeRequest]>,
    first: usize,
    stop: CancellationToken,
) -> JoinHandle<Result<()>> {
    tokio::task::spawn_blocking(move || {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let sending = async move {
            let mut connection = client.connect().await?;
            for request in requests.iter().cycle().skip(first) {
                if stop.is_cancelled() {
                    break;
                }
                send_large(&mut connection, request).await?;
            }
            Ok(())
        };
        runtime.block_on(sending)
    })
}

async fn send_large(connection: &mut Connection, request: &LargeRequest) -> Result<()> {
    let LargeRequest {
        method,
        path,
        content_type,
        body,
    } = request;
    let answer = connection.send_as(method.clone(), path, content_type, body.clone());
    let status = answer.await?.status;
    // What is stored of an apply names every entry, which may be more than an object may have.
    ensure!(
        matches!(status, 200..300 | 413 | 422 | 429),
        "{method} {path}: {status}"
    );
    Ok(())
}

/// The mean time of a large request without others beside it, in milliseconds.
async fn time_large(client: &Client, requests: &[LargeRequest]) -> Result<f64> {
    let mut connection = client.connect().await?;
    let watch = Stopwatch::start();
    for request in requests {
        send_large(&mut connection, request).await?;
    }
    Ok(milliseconds(watch.elapsed()) / requests.len() as f64)
}

fn large_requests() -> Vec<LargeRequest> {
    let pods = format!("/api/v1/namespaces/{NAMESPACE}/pods");
    let request = |method, path: String, content_type, object: &Value| LargeRequest {
        method,
        path,
        content_type,
        body: object.to_string().into(),
    };
    let variables = entries(|n| json!({"name": format!("V{n}"), "value": "v"}));
    let owners = entries(|n| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "name": format!("o{n}"),
            "uid": format!("00000000-0000-0000-0000-{n:012}"),
        })
    });
    let ports = entries(|n| json!({"name": format!("p{n}"), "containerPort": n % 65_535 + 1}));
    let spread = entries(
        |n| json!({"topologyKey": format!("k{n}"), "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}),
    );
    let pod = |container: Value, more: Value| {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "large"},
            "spec": {"containers": [{"name": "main", "image": "none"}]},
        });
        merge(&mut pod["spec"]["containers"][0], container);
        merge(&mut pod, more);
        pod
    };
    let with_variables = pod(json!({"env": variables}), json!({}));
    let dry = format!("{pods}?dryRun=All");
    let apply = format!("{pods}/large?dryRun=All&fieldManager=large&force=true");
    let none = || json!({});
    let owned = json!({"metadata": {"name": "large", "ownerReferences": owners}});
    let mut spreading = pod(none(), none());
    spreading["spec"]["topologySpreadConstraints"] = spread;
    vec![
        request(Method::POST, dry.clone(), JSON, &with_variables),
        request(
            Method::PATCH,
            apply,
            "application/apply-patch+yaml",
            &with_variables,
        ),
        request(Method::POST, dry.clone(), JSON, &pod(none(), owned)),
        request(Method::POST, dry.clone(), JSON, &spreading),
        request(
            Method::POST,
            dry,
            JSON,
            &pod(json!({"ports": ports}), none()),
        ),
    ]
}

/// As many entries as a large body has room for.
fn entries(entry: impl Fn(usize) -> Value) -> Value {
    let (mut all, mut bytes) = (Vec::new(), 0);
    while bytes < LARGE_BYTES {
        let entry = entry(all.len());
        bytes += entry.to_string().len() + 1;
        all.push(entry);
    }
    Value::Array(all)
}

/// Adds the fields of `more`.
fn merge(into: &mut Value, more: Value) {
    if let (Some(into), Value::Object(more)) = (into.as_object_mut(), more) {
        into.extend(more);
    }
}
