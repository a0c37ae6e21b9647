//! Images in the repository of a mirror, which are deleted once no stream has them, beside mirrors whose registry
//! refuses, limits, breaks off and lies.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use http::Method;
use jiff::Timestamp;
use kube::{Api, api::ListParams};
use neap_emulators::{
    registry::{Registry, RepositoryName},
    system::Emulator,
};
use neap_kit::{context::Context, manager::Component};
use neap_pocket::store::Event;
use neap_release::{
    api::annotations,
    image_stream::api::ImageStream,
    mirror_cleanup::{CleanupOptions, MirrorCleaner, scope},
};
use neap_trial::{UserRequest, Workload, external::ExternalClient};
use serde_json::{Value, json};

use crate::{
    processes::{NAMESPACE, with_definitions},
    registry::{self, BAD_HOST, HOST, bad_faults, most_in_an_hour},
};

const STREAM: &str = "/apis/image.openshift.io/v1/namespaces/default/imagestreams/release";
const REPOSITORY: &str = "mirror/release";
/// Another owner has tags with the names of releases.
const OTHERS: &str = "candidates/release";
const IMAGES: [(&str, &str); 5] = [
    (REPOSITORY, "4.99.0"),
    (REPOSITORY, "4.98.0"),
    (REPOSITORY, "4.97.0"),
    (OTHERS, "4.97.0"),
    (OTHERS, "4.98.0"),
];
/// Old releases in the repositories of the bad registry.
const BAD_IMAGES: [(&str, &str); 4] = [
    ("limited", "4.96.0"),
    ("broken", "4.96.0"),
    ("lying", "4.96.0"),
    ("refused", "4.96.0"),
];
/// The streams that are mirrored there.
const BAD: [&str; 4] = [
    "/apis/image.openshift.io/v1/namespaces/default/imagestreams/limited",
    "/apis/image.openshift.io/v1/namespaces/default/imagestreams/broken",
    "/apis/image.openshift.io/v1/namespaces/default/imagestreams/lying",
    "/apis/image.openshift.io/v1/namespaces/default/imagestreams/refused",
];
const INTERVAL: Duration = Duration::from_hours(6);
/// The images are created a day after the start of a run.
const MINIMUM_AGE: Duration = Duration::from_hours(24);
const DAY: Duration = Duration::from_hours(24);
/// The calls of two passes over three tags, and some that were repeated.
const MAX_PER_HOUR: usize = 40;

/// A Stable stream that loses a release, and the process that cleans its mirror up.
pub fn workload() -> Workload {
    let workload = Workload::new("release-mirrors")
        .without_poison("the streams of all namespaces keep images of one repository")
        .service(HOST, |clock| {
            registry::open(clock, HOST, &IMAGES, &[], problems)
        })
        .service(BAD_HOST, |clock| {
            registry::open(
                clock,
                BAD_HOST,
                &BAD_IMAGES,
                &bad_faults(),
                |_, registry| bad_problems(registry),
            )
        });
    with_definitions(workload)
        .process("cleanup", None, |context, external| {
            Ok(cleanup(context, external).into_iter().collect())
        })
        .step(
            "two releases",
            [
                UserRequest::Create(bad_stream("limited")),
                UserRequest::Create(bad_stream("broken")),
                UserRequest::Create(bad_stream("lying")),
                UserRequest::Create(bad_stream("refused")),
                UserRequest::Create(stream(&["4.99.0", "4.98.0"])),
            ],
        )
        .until(DAY * 3)
        .step(
            "one release",
            [UserRequest::Patch(
                STREAM,
                json!({"spec": {"tags": tags(&["4.99.0"])}}),
            )],
        )
        .until(DAY * 4)
        .step(
            "the streams are deleted",
            [STREAM, BAD[0], BAD[1], BAD[2], BAD[3]].map(UserRequest::Delete),
        )
        .until(DAY * 5)
}

fn cleanup(context: &Context, external: &ExternalClient) -> Option<Component> {
    let registry = registry::client(external, context.clock)?;
    let (client, clock) = (context.client.clone(), context.clock);
    let options = CleanupOptions {
        minimum_age: MINIMUM_AGE,
        interval: INTERVAL,
        ..CleanupOptions::default()
    };
    let mut cleaner = MirrorCleaner::new(options);
    Some(Component::new("cleanup", move |stop| async move {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = clock.sleep(INTERVAL) => {}
            }
            let streams: Api<ImageStream> = Api::namespaced(client.clone(), NAMESPACE);
            // A pass that fails is made again at the next time.
            if let Ok(streams) = streams.list(&ListParams::default()).await {
                cleaner.clean_up(&registry, &scope(&streams.items)).await;
            }
        }
    }))
}

fn tags(names: &[&str]) -> Value {
    names.iter().map(|name| json!({"name": name})).collect()
}

fn stream(names: &[&str]) -> Value {
    mirrored("release", &format!("{HOST}/{REPOSITORY}"), names)
}

/// A stream without releases that is mirrored to the bad registry.
fn bad_stream(repository: &str) -> Value {
    mirrored(repository, &format!("{BAD_HOST}/{repository}"), &[])
}

fn mirrored(name: &str, mirror: &str, names: &[&str]) -> Value {
    let config = json!({"name": name, "as": "Stable", "alternateImageRepository": mirror});
    json!({
        "apiVersion": "image.openshift.io/v1", "kind": "ImageStream",
        "metadata": {
            "name": name, "namespace": NAMESPACE,
            "annotations": {annotations::CONFIG: config.to_string()},
        },
        "spec": {"tags": tags(names)},
    })
}

fn problems(history: &[Arc<Event>], registry: &Emulator<Registry>) -> Vec<String> {
    let mut problems = deletions(history, registry);
    let left = |repository: &str| -> BTreeSet<String> {
        let name: Option<RepositoryName> = repository.parse().ok();
        let tags = name.map(|name| registry.system().tags(&name));
        let tags = tags.into_iter().flatten();
        tags.map(|(tag, _)| tag.as_str().to_owned()).collect()
    };
    for (repository, wanted) in [
        (REPOSITORY, BTreeSet::from(["4.99.0".to_owned()])),
        (
            OTHERS,
            BTreeSet::from(["4.97.0".to_owned(), "4.98.0".to_owned()]),
        ),
    ] {
        let left = left(repository);
        if left != wanted {
            problems.push(format!(
                "{repository} has {left:?} at the end, and not {wanted:?}"
            ));
        }
    }
    let calls = most_in_an_hour(registry);
    if calls > MAX_PER_HOUR {
        problems.push(format!("{calls} calls within an hour"));
    }
    problems
}

/// Of the bad registry nothing is known, so nothing is deleted there, and it is left alone after failures.
fn bad_problems(registry: &Emulator<Registry>) -> Vec<String> {
    let calls = registry.calls().calls();
    let deleted = calls.iter().filter(|call| call.method == Method::DELETE);
    let mut problems: Vec<_> = deleted
        .map(|call| format!("{} was deleted without being read", call.path))
        .collect();
    if most_in_an_hour(registry) > MAX_PER_HOUR {
        problems.push(format!("{BAD_HOST} got too many calls within an hour"));
    }
    problems
}

/// Nothing is deleted while a stream has it, and nothing of others ever.
fn deletions(history: &[Arc<Event>], registry: &Emulator<Registry>) -> Vec<String> {
    let streams = history
        .iter()
        .filter(|event| &*event.path == "default/release");
    let tags: BTreeMap<Timestamp, BTreeSet<String>> = streams
        .map(|event| {
            let object = event.object.value();
            let tags = object["spec"]["tags"].as_array().into_iter().flatten();
            let names = tags.filter_map(|tag| tag["name"].as_str().map(str::to_owned));
            (event.at, names.collect())
        })
        .collect();
    let calls = registry.calls().calls();
    let deleted = calls.iter().filter(|call| call.method == Method::DELETE);
    let mut problems = Vec::new();
    for call in deleted {
        let path = format!("/v2/{REPOSITORY}/manifests/");
        let Some(tag) = call.path.strip_prefix(&path) else {
            problems.push(format!("{} was deleted, which is not ours", call.path));
            continue;
        };
        let (_, there) = tags.range(..=call.at).next_back().unzip();
        if there.is_none_or(|there| there.contains(tag)) {
            problems.push(format!("{tag} was deleted while a stream has it"));
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
    fn a_registry_that_fails_is_left_alone_longer_each_time_and_the_other_is_cleaned_up() {
        let template = ClusterTemplate::prepare_blocking().unwrap();
        let calm = Plan::without_faults("release-mirrors", 7);
        let record = run(&workload(), &calm, &template).unwrap();
        assert_eq!(record.violations, []);
        let lists = record.entries.iter().filter(|it| {
            let name = &it.call.name;
            it.kind == EntryKind::Request && name.starts_with(BAD_HOST) && name.contains("tags")
        });
        // In some 16 passes over four days.
        let lists = lists.count();
        assert!((4..12).contains(&lists), "{lists} lists of tags");
    }

    #[test]
    fn the_clean_up_of_mirrors_survives_a_sample_of_faults() -> Result<(), proof::Failure> {
        let every = every(19);
        let faults = proof::every_nth_fault(&workload(), every)?;
        assert!(faults > 100 / every, "{faults} faults");
        Ok(())
    }
}
