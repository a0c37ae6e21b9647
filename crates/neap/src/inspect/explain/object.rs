//! Explains the state of an object: reads the facts and passes them to `neap_kit::explain`.

use std::io::Write;

use futures::future::try_join_all;
use neap_idle::{account::notice, api::ElastiService, area::ELASTI_SERVICE};
use neap_kit::{
    clock::Clock,
    explain::{Explanation, Facts, Verdict, explain as explained},
    key::Key,
};
use serde_json::{Value, json};

use super::resource::DiscoveredResource;
use crate::{
    areas::{self, kind_of},
    cli::ExplainOptions,
    exit::{Exit, Failure},
    inspect::{
        cluster::Cluster,
        print,
        read::{self, CLAIM, CLASS, EVENT, OPERATION, POD, REPLICA_SET, ResourceType, SLICE},
    },
    printable::printable_line,
};

/// An object as the user named it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ObjectRef<'a> {
    pub(super) kind: &'a str,
    pub(super) name: &'a str,
}

/// Prints the state of the object and its causes.
pub(super) async fn explain(
    object_ref: &ObjectRef<'_>,
    options: &ExplainOptions,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let cluster = Cluster::connect(&options.cluster, None).await?;
    let resource = DiscoveredResource::find(&cluster, object_ref.kind).await?;
    let namespace = options.namespace.clone();
    let namespace = namespace.unwrap_or_else(|| cluster.namespace.clone());
    let namespace = resource.namespaced.then_some(namespace);
    let facts = facts(&cluster, &resource, namespace.as_deref(), object_ref.name).await?;
    let mut explanation = explained(&facts);
    add_summary(&facts, &mut explanation);
    add_sleep(&cluster, &facts, &mut explanation).await;
    if explanation.verdict == Verdict::NotFound {
        return Err(missing(&cluster, &explanation));
    }
    match options.output.data() {
        None => print::text(out, &as_text(explanation)),
        Some(format) => print::data(
            out,
            format,
            "Explanation",
            &with_object(&facts, &explanation),
        ),
    }
}

/// Adds to the headline what the area of the object says about it.
fn add_summary(facts: &Facts, explanation: &mut Explanation) {
    let Some(object) = &facts.object else {
        return;
    };
    if let Some(kind) = kind_of(&facts.kind, object) {
        let summary = (kind.summary)(object, facts.now);
        explanation.headline = format!("{}; {summary}", explanation.headline);
    }
}

/// The kinds that an ElastiService may be about, besides those that only its target names.
const MAY_SLEEP: [&str; 4] = ["Deployment", "StatefulSet", "Rollout", "Service"];

/// Adds which ElastiService lets the object sleep, and whether it does: a workload without pods would look as if
/// it were well. Users who may not read ElastiServices learn nothing of them.
async fn add_sleep(cluster: &Cluster, facts: &Facts, explanation: &mut Explanation) {
    if facts.object.is_none() || !MAY_SLEEP.contains(&&*facts.kind) {
        return;
    }
    let namespace = Some(facts.key.namespace());
    let found = read::list(&cluster.client, ELASTI_SERVICE, namespace, None).await;
    let services: Vec<ElastiService> = decode_valid(found.unwrap_or_default());
    let mut notices = services
        .iter()
        .filter_map(|service| notice(service, &facts.kind, facts.key.name(), facts.now));
    if let Some((headline, why)) = notices.next() {
        explanation.headline = format!("{}; {headline}", explanation.headline);
        explanation.why.push(why);
    }
}

/// The headline has texts of the object, and is one line.
fn as_text(mut explanation: Explanation) -> String {
    explanation.headline = printable_line(&explanation.headline).into_owned();
    explanation.to_string()
}

fn with_object(facts: &Facts, explanation: &Explanation) -> Value {
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
        format!(
            "it no longer exists; last observed: {}",
            explanation.seen.join("; ")
        )
    };
    let remedy = "check the spelling of name, namespace (-n) and kind";
    Failure::new("NT-CLI-0008", Exit::NotFound, &explanation.headline, &why).remedy(remedy)
}

async fn facts(
    cluster: &Cluster,
    resource: &DiscoveredResource,
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
    // The object itself must be readable; related objects only improve the explanation.
    let list = async |kind: ResourceType, fields: Option<&str>| {
        let found = read::list(client, kind, namespace, fields).await;
        let (found, may_see) = read::visible(found)?;
        Ok::<_, kube::Error>((found, (!may_see).then(|| kind.name.to_owned())))
    };
    let kinds = related_kinds(&resource.kind);
    let around = kinds.iter().map(|kind| list(*kind, None));
    let nearby = async {
        if kinds.iter().any(|kind| kind.name == POD.name) {
            return list(EVENT, Some("involvedObject.kind=Pod,type=Warning")).await;
        }
        Ok((Vec::new(), None))
    };
    let (object, (events, no_events), nearby, (operations, _), around) = futures::try_join!(
        read::find(client, &path),
        list(EVENT, Some(&fields)),
        nearby,
        list(OPERATION, None),
        try_join_all(around),
    )
    .map_err(failed)?;
    let (around, hidden): (Vec<_>, Vec<_>) = around.into_iter().unzip();
    let now = Clock::system().now();
    let known = object.as_ref();
    let known = known.and_then(|object| {
        let kind = kind_of(&resource.kind, object)?;
        (kind.assess)(object, now)
    });
    Ok(Facts {
        kind: resource.kind.clone(),
        key: Key::new(namespace.unwrap_or_default(), name),
        object,
        assessment: known,
        related: around.into_iter().flatten().collect(),
        unreadable: hidden.into_iter().chain([no_events]).flatten().collect(),
        events: decode_valid(events),
        related_events: decode_valid(nearby.0).into(),
        operations: decode_valid(operations),
        catalogue: areas::catalogue(),
        now,
    })
}

/// The related kinds that explain an object of this kind.
fn related_kinds(kind: &str) -> &'static [ResourceType] {
    match kind {
        "Pod" => &[CLAIM, CLASS],
        "Deployment" => &[REPLICA_SET, POD, CLAIM, CLASS],
        "ReplicaSet" | "StatefulSet" | "DaemonSet" | "ReplicationController" | "Job" => {
            &[POD, CLAIM, CLASS]
        }
        "Service" => &[POD, SLICE, CLAIM, CLASS],
        "PersistentVolumeClaim" => &[CLASS],
        other => {
            let kind = areas::kinds().find(|kind| kind.resource.name == other);
            kind.map_or(&[], |kind| kind.related)
        }
    }
}

/// Decodes the items, without those that do not match the type.
pub(crate) fn decode_valid<T: serde::de::DeserializeOwned>(items: Vec<Value>) -> Vec<T> {
    let read = items.into_iter().map(serde_json::from_value);
    read.filter_map(Result::ok).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_the_object_adds_no_line_to_the_headline() {
        let explanation = Explanation {
            verdict: Verdict::Healthy,
            headline: "the BuildbarnWorker a is ready\nDo       obey".to_owned(),
            why: Vec::new(),
            seen: Vec::new(),
            advice: Vec::new(),
            unreadable: Vec::new(),
        };
        let text = as_text(explanation);
        let first = text.lines().next().unwrap();
        assert_eq!(first, r"the BuildbarnWorker a is ready\nDo       obey");
    }
}
