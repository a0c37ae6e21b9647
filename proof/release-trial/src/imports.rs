//! Imports of tags, and requests for those that failed, with registries that refuse, limit, break off and
//! lie.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use neap_kit::{context::Context, manager::Component, watch::WatchesStopped};
use neap_pocket::store::{Change, Event};
use neap_release::{
    api::annotations,
    image_stream::{api::IMPORT_REQUESTED, controller::component, facts::Settings},
    reimport::{ReimportOptions, Reimporter},
};
use neap_trial::{UserRequest, Workload, external::ExternalClient};
use serde_json::{Value, json};

use crate::{
    processes::{NAMESPACE, with_definitions},
    registry::{self, BAD_HOST, HOST, bad_faults, digest_of, most_in_an_hour},
};

const STREAMS: &str = "image.openshift.io/imagestreams";
const OURS: &str = "/apis/image.openshift.io/v1/namespaces/default/imagestreams/ours";
const BAD: &str = "/apis/image.openshift.io/v1/namespaces/default/imagestreams/bad";
const THEIRS_STATUS: &str =
    "/apis/image.openshift.io/v1/namespaces/default/imagestreams/theirs/status";

const IMAGES: [(&str, &str); 4] = [
    ("app", "one"),
    ("app", "two"),
    ("app", "three"),
    ("app", "four"),
];
const BAD_IMAGES: [(&str, &str); 4] = [
    ("limited", "one"),
    ("broken", "two"),
    ("lying", "three"),
    ("refused", "four"),
];
/// The digest of an image that a user has pushed.
const PUSHED: &str = "sha256:9999999999999999999999999999999999999999999999999999999999999999";
/// Requests to one registry per hour, of which a tenth may come at once.
const PER_HOUR: u32 = 120;
/// What may come on top of that: calls that the plan repeats, and those of imports under way.
const TOLERATED: u32 = 20;

/// Imports, and requests for imports.
pub fn workload() -> Workload {
    const WHY: &str = "how often an import was tried differs from run to run";
    let workload = Workload::new("release-imports")
        .without_poison(WHY)
        .judged_alone(WHY)
        .service(HOST, |clock| {
            registry::open(clock, HOST, &IMAGES, &[], |history, registry| {
                let mut problems = streams(history);
                problems.extend(unfinished(history));
                problems.extend(storm(HOST, most_in_an_hour(registry)));
                problems
            })
        })
        .service(BAD_HOST, |clock| {
            registry::open(
                clock,
                BAD_HOST,
                &BAD_IMAGES,
                &bad_faults(),
                |_, registry| {
                    storm(BAD_HOST, most_in_an_hour(registry))
                        .into_iter()
                        .collect()
                },
            )
        });
    with_definitions(workload)
        .process("imports", None, importer)
        .actor("reimport", |context| Ok(vec![reimporter(context)]))
        .step(
            "tags",
            [
                UserRequest::Create(stream("theirs", None, HOST, &[("gone", "app:gone")])),
                UserRequest::Patch(THEIRS_STATUS, pushed()),
                UserRequest::Create(stream("ours", Some(CONFIG), HOST, &FIRST)),
            ],
        )
        .until(Duration::from_mins(15))
        .step(
            "a tag is set to another image",
            [UserRequest::Patch(
                OURS,
                json!({"spec": {"tags": tags(HOST, &SECOND)}}),
            )],
        )
        .until(Duration::from_mins(30))
        .step(
            "images that cannot be imported",
            [UserRequest::Create(stream(
                "bad",
                Some(OTHER_CONFIG),
                BAD_HOST,
                &FAILING,
            ))],
        )
        .until(Duration::from_hours(5))
        // What fails is tried again for ever, so there is no rest before this.
        .step(
            "they are given up",
            [UserRequest::Delete(BAD), UserRequest::Delete(THEIRS)],
        )
}

const THEIRS: &str = "/apis/image.openshift.io/v1/namespaces/default/imagestreams/theirs";
const CONFIG: &str = r#"{"name": "4.21.0-0.nightly", "to": "release"}"#;
const OTHER_CONFIG: &str = r#"{"name": "4.22.0-0.nightly", "to": "release"}"#;
const FIRST: [(&str, &str); 3] = [("a", "app:one"), ("b", "app:two"), ("c", "app:three")];
const SECOND: [(&str, &str); 3] = [("a", "app:one"), ("b", "app:four"), ("c", "app:three")];
const FAILING: [(&str, &str); 5] = [
    ("limited", "limited:one"),
    ("broken", "broken:two"),
    ("lying", "lying:three"),
    ("refused", "refused:four"),
    ("gone", "gone:five"),
];

fn importer(
    context: &Context,
    external: &ExternalClient,
) -> Result<Vec<Component>, WatchesStopped> {
    let Some(client) = registry::client(external, context.clock) else {
        return Ok(Vec::new());
    };
    let settings = Settings {
        requests_per_hour: PER_HOUR,
        ..Settings::default()
    };
    Ok(vec![component(context, &client, settings)?])
}

/// Asks again for failed imports every ten minutes.
fn reimporter(context: &Context) -> Component {
    let options = ReimportOptions {
        namespaces: vec![NAMESPACE.to_owned()],
        ..ReimportOptions::default()
    };
    let interval = options.interval;
    let (client, clock) = (context.client.clone(), context.clock);
    let mut reimporter = Reimporter::new(context.writer("release-reimport"), clock, options);
    Component::new("reimport", move |stop| async move {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = clock.sleep(interval) => {}
            }
            // A pass that fails is made again at the next time.
            let _ = reimporter.pass(&client).await;
        }
    })
}

fn tags(host: &str, tags: &[(&str, &str)]) -> Value {
    let tags = tags.iter().map(|(name, image)| {
        let from = json!({"kind": "DockerImage", "name": format!("{host}/{image}")});
        json!({"name": name, "from": from})
    });
    tags.collect()
}

fn stream(name: &str, config: Option<&str>, host: &str, images: &[(&str, &str)]) -> Value {
    let annotations = config.map_or(json!({}), |config| json!({annotations::CONFIG: config}));
    json!({
        "apiVersion": "image.openshift.io/v1", "kind": "ImageStream",
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": annotations},
        "spec": {"tags": tags(host, images)},
    })
}

/// The status of an image that a user has pushed.
fn pushed() -> Value {
    let item = json!({
        "created": "2026-01-01T00:00:00Z", "image": PUSHED, "generation": 1,
        "dockerImageReference": format!("{HOST}/theirs@{PUSHED}"),
    });
    json!({"status": {"tags": [{"tag": "pushed", "items": [item]}]}})
}

fn storm(host: &str, calls: usize) -> Option<String> {
    let bound = PER_HOUR + PER_HOUR / 10 + TOLERATED;
    (calls > bound as usize).then(|| format!("{host} got {calls} calls within an hour"))
}

/// The status names only images that exist; what users declare and what others push stays as it is.
fn streams(history: &[Arc<Event>]) -> Vec<String> {
    let mut known: BTreeSet<_> = IMAGES.iter().map(|(_, name)| digest_of(name)).collect();
    known.insert(PUSHED.to_owned());
    let declared = [
        tags(HOST, &FIRST),
        tags(HOST, &SECOND),
        tags(BAD_HOST, &FAILING),
        tags(HOST, &[("gone", "app:gone")]),
    ];
    let mut problems = Vec::new();
    for event in history.iter().filter(|event| &*event.resource == STREAMS) {
        let (path, object) = (&event.path, event.object.value());
        for (tag, image) in images(&object) {
            if !known.contains(&image) {
                problems.push(format!("{path}:{tag} is {image}, which never existed"));
            }
        }
        if !declared.contains(&declared_tags(&object)) {
            problems.push(format!("{path} has other tags than users gave it"));
        }
        let is_theirs = &**path == "default/theirs";
        let was_asked = !object["metadata"]["annotations"][IMPORT_REQUESTED].is_null();
        if is_theirs && was_asked {
            problems.push(format!(
                "an import was asked for in {path}, which is no stream of releases"
            ));
        }
        // A user pushes after the creation.
        let is_written = event.change == Change::Modified && !object["status"].is_null();
        let pushed = ("pushed".to_owned(), PUSHED.to_owned());
        if is_theirs && is_written && !images(&object).contains(&pushed) && was_pushed(event) {
            problems.push(format!("{path} has lost the image that a user has pushed"));
        }
    }
    problems.dedup();
    problems
}

fn was_pushed(event: &Event) -> bool {
    let previous = event.previous.as_ref().map(|object| object.value());
    previous.is_some_and(|object| images(&object).iter().any(|(tag, _)| tag == "pushed"))
}

/// The tags of a stream, and all images that they ever stood for.
fn images(object: &Value) -> Vec<(String, String)> {
    let tags = object["status"]["tags"].as_array().into_iter().flatten();
    let images = tags.flat_map(|tag| {
        let items = tag["items"].as_array().into_iter().flatten();
        items.map(|item| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            (text(&tag["tag"]), text(&item["image"]))
        })
    });
    images.collect()
}

/// The tags in the form in which they were declared.
fn declared_tags(object: &Value) -> Value {
    let tags = object["spec"]["tags"].as_array().into_iter().flatten();
    let tags = tags.map(|tag| json!({"name": tag["name"], "from": tag["from"]}));
    tags.collect()
}

/// At the end, each tag of `ours` stands for its image.
fn unfinished(history: &[Arc<Event>]) -> Vec<String> {
    let ours = history.iter().rfind(|event| &*event.path == "default/ours");
    let Some(object) = ours.map(|event| event.object.value()) else {
        return vec!["there is no stream".to_owned()];
    };
    let mut problems = Vec::new();
    let tags = object["status"]["tags"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    for (name, image) in SECOND {
        let wanted = digest_of(image.trim_start_matches("app:"));
        let tag = tags.iter().find(|tag| tag["tag"] == name);
        let found = tag.map(|tag| tag["items"][0]["image"].clone());
        if found != Some(wanted.clone().into()) {
            problems.push(format!("at the end {name} is {found:?} and not {wanted}"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use neap_trial::{ClusterTemplate, EntryKind, plan::Plan, proof, run::run};

    use super::*;
    use crate::stable::tests::every;

    #[test]
    fn without_faults_of_a_plan_each_bad_image_is_reported_and_never_recorded() {
        let template = ClusterTemplate::prepare_blocking().unwrap();
        let calm = Plan::without_faults("release-imports", 7);
        let record = run(&workload(), &calm, &template).unwrap();
        assert_eq!(record.violations, []);
        let bad = record.history.iter().rfind(|it| &*it.path == "default/bad");
        let bad = bad.unwrap().object.value();
        assert_eq!(images(&bad), []);
        let tags = bad["status"]["tags"].as_array().unwrap();
        let mut reasons: Vec<_> = tags
            .iter()
            .map(|tag| {
                let condition = &tag["conditions"][0];
                assert_eq!(condition["status"], "False");
                let text = |value: &Value| value.as_str().unwrap().to_owned();
                (text(&tag["tag"]), text(&condition["reason"]))
            })
            .collect();
        reasons.sort();
        let reasons: Vec<_> = reasons
            .iter()
            .map(|(tag, why)| format!("{tag} {why}"))
            .collect();
        let wanted = [
            "broken RegistryUnreachable",
            "gone NotFound",
            "limited TooManyRequests",
            "lying DigestMismatch",
            "refused Forbidden",
        ];
        assert_eq!(reasons, wanted);
        let calls = record
            .entries
            .iter()
            .filter(|it| it.kind == EntryKind::Request && it.call.name.starts_with(BAD_HOST));
        let calls = calls.count();
        assert!(
            (40..400).contains(&calls),
            "{calls} calls in four hours and a half"
        );
    }

    #[test]
    fn imports_survive_a_sample_of_faults() -> Result<(), proof::Failure> {
        let every = every(211);
        let faults = proof::every_nth_fault(&workload(), every)?;
        assert!(faults > 500 / every, "{faults} faults");
        Ok(())
    }
}
