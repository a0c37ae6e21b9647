//! Why an object is as it is: reads what is known, and lets kit explain it.

use std::io::Write;

use futures::future::try_join_all;
use neap_kit::{
    clock::Clock,
    explain::{Explanation, Facts, Verdict, explain as explained},
    key::Key,
};
use serde_json::{Value, json};

use super::{
    resource::Resource,
    sleeper::{accounted, judged},
};
use crate::{
    ask::{
        cluster::Cluster,
        print,
        read::{self, CLAIM, CLASS, EVENT, Kind, OPERATION, POD, REPLICA_SET, SLICE},
    },
    cli::{ExplainOptions, Output},
    exit::{Exit, Failure},
};

/// An object as it was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wanted<'a> {
    pub(super) kind: &'a str,
    pub(super) name: &'a str,
}

/// Says why it is as it is.
pub(super) async fn explain(
    wanted: &Wanted<'_>,
    options: &ExplainOptions,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let cluster = Cluster::connect(&options.cluster, None).await?;
    let resource = Resource::find(&cluster, wanted.kind).await?;
    let namespace = options.namespace.clone();
    let namespace = namespace.unwrap_or_else(|| cluster.namespace.clone());
    let namespace = resource.namespaced.then_some(namespace);
    let facts = facts(&cluster, &resource, namespace.as_deref(), wanted.name).await?;
    let mut explanation = explained(&facts);
    account_for(&facts, &mut explanation);
    if explanation.verdict == Verdict::Missing {
        return Err(missing(&cluster, &explanation));
    }
    match options.output {
        Output::Text => print::text(out, &explanation.to_string()),
        Output::Json => print::json(out, "Explanation", &about(&facts, &explanation)),
    }
}

/// Of a service that may sleep it is said first whether it does.
fn account_for(facts: &Facts, explanation: &mut Explanation) {
    let object = facts.object.as_ref();
    let account = object.and_then(|object| accounted(&facts.kind, object, facts.now));
    if let Some(account) = account {
        let state = account.state.word();
        explanation.headline = format!("{}; it is {state}", explanation.headline);
    }
}

fn about(facts: &Facts, explanation: &Explanation) -> Value {
    let mut answer = serde_json::to_value(explanation).unwrap_or_default();
    answer["object"] = json!({
        "kind": facts.kind,
        "namespace": facts.key.namespace(),
        "name": facts.key.name(),
    });
    answer
}

fn missing(cluster: &Cluster, explanation: &Explanation) -> Failure {
    let why = if explanation.seen.is_empty() {
        format!("{} has no such object", cluster.address)
    } else {
        format!("it is gone; last was seen {}", explanation.seen.join("; "))
    };
    let remedy = "see whether name, namespace (-n) and kind are spelled as they should be";
    Failure::new("NT-CLI-0008", Exit::NotFound, &explanation.headline, &why).remedy(remedy)
}

async fn facts(
    cluster: &Cluster,
    resource: &Resource,
    namespace: Option<&str>,
    name: &str,
) -> Result<Facts, Failure> {
    let what = format!("{} {name}", resource.kind);
    let failed = |error| cluster.failed(&what, &error);
    let client = &cluster.client;
    let path = read::path(&resource.api_version, namespace, &resource.plural);
    let path = format!("{path}/{name}");
    let fields = format!(
        "involvedObject.kind={},involvedObject.name={name}",
        resource.kind
    );
    // The object has to be seen; what is around it makes the answer better.
    let seen = async |kind: Kind, fields: Option<&str>| {
        let found = read::list(client, kind, namespace, fields).await;
        let (found, may_see) = read::visible(found)?;
        Ok::<_, kube::Error>((found, (!may_see).then(|| kind.name.to_owned())))
    };
    let kinds = around(&resource.kind);
    let around = kinds.iter().map(|kind| seen(*kind, None));
    let nearby = async {
        if kinds.iter().any(|kind| kind.name == POD.name) {
            return seen(EVENT, Some("involvedObject.kind=Pod,type=Warning")).await;
        }
        Ok((Vec::new(), None))
    };
    let (object, (events, no_events), nearby, (operations, _), around) = futures::try_join!(
        read::find(client, &path),
        seen(EVENT, Some(&fields)),
        nearby,
        seen(OPERATION, None),
        try_join_all(around),
    )
    .map_err(failed)?;
    let (around, hidden): (Vec<_>, Vec<_>) = around.into_iter().unzip();
    let now = Clock::system().now();
    let known = object.as_ref();
    let known = known.and_then(|object| judged(&resource.kind, object, now));
    Ok(Facts {
        kind: resource.kind.clone(),
        key: Key::new(namespace.unwrap_or_default(), name),
        object,
        known,
        around: around.into_iter().flatten().collect(),
        hidden: hidden.into_iter().chain([no_events]).flatten().collect(),
        events: readable(events),
        nearby: readable(nearby.0).into(),
        operations: readable(operations),
        now,
    })
}

/// What has to be known beside an object of this kind.
fn around(kind: &str) -> &'static [Kind] {
    match kind {
        "Pod" => &[CLAIM, CLASS],
        "Deployment" => &[REPLICA_SET, POD, CLAIM, CLASS],
        "ReplicaSet" | "StatefulSet" | "DaemonSet" | "ReplicationController" | "Job" => {
            &[POD, CLAIM, CLASS]
        }
        "Service" => &[POD, SLICE, CLAIM, CLASS],
        "PersistentVolumeClaim" => &[CLASS],
        _ => &[],
    }
}

/// Those that are what their kind should be; the others cannot be told of.
pub(crate) fn readable<T: serde::de::DeserializeOwned>(items: Vec<Value>) -> Vec<T> {
    let read = items.into_iter().map(serde_json::from_value);
    read.filter_map(Result::ok).collect()
}
