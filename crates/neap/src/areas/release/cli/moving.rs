//! `neap release shadow`, `hand-over` and `hand-back`: moving from the original, and back.

use std::{io::Write, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use neap_kit::{apply::ResourceKind, key::Key, why::chain};
use neap_release::{
    hand_over::{CONFIG_KEY, Owner, Refusal, Step, map_name, next},
    image_stream::api::ImageStream,
    payload::{
        controller::{PayloadOptions, SharedQualifiers},
        facts::Timeouts,
        run_keys::RunKeys,
    },
    shadow::{Difference, survey},
};
use serde_json::json;

use super::{
    MoveOptions, ShadowOptions,
    releases::{Releases, write_failed},
};
use crate::{
    exit::{Exit, Failure},
    inspect::{
        listing::{self, Column, Listed, Listing},
        print,
    },
    symbols::Symbols,
};

/// The writer of a read-only command.
const NAME: &str = "neap-cli";
/// Bounds the first read of all objects.
const READ_TIMEOUT: Duration = Duration::from_mins(2);

const COLUMNS: &[Column] = &[
    Column::new("NAMESPACE"),
    Column::new("RELEASE"),
    Column::new("RECORDED"),
    Column::new("COMPUTED"),
    Column::new("WHY"),
];

pub(super) async fn shadow(options: &ShadowOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let releases = Releases::of(&options.scope).await?;
    // Fails clearly where the kinds are not served; a watch would wait for them.
    releases.payloads().await?;
    let read = async || {
        let key_namespace = options.release_namespace.clone();
        let key_namespace = key_namespace.or_else(|| releases.namespace.clone());
        let key_namespace = key_namespace.unwrap_or_else(|| releases.cluster.namespace.clone());
        let payload_options = |context: &neap_kit::context::Context| PayloadOptions {
            timeouts: Timeouts::default(),
            run_keys: RunKeys::stand_in(context.writer(NAME), context.clock, &key_namespace),
            qualifiers: SharedQualifiers::default(),
            job_namespace: None,
        };
        let client = releases.cluster.client.clone();
        let comparing = Box::pin(survey(client, releases.clock, payload_options));
        let compared = releases.clock.within(READ_TIMEOUT, comparing).await;
        let compared = compared.ok_or_else(|| unread("not all objects were listed in time"))?;
        let (count, mut found) = compared.map_err(|error| unread(&chain(&error)))?;
        if let Some(namespace) = &releases.namespace {
            found.retain(|one| one.namespace == *namespace);
        }
        Ok(Listing {
            kind: "ReleaseDifferenceList",
            resource: "releasepayload.release.openshift.io",
            columns: COLUMNS,
            items: found.iter().map(listed).collect(),
            empty: format!("No verdict would differ; {count} releases were compared."),
        })
    };
    listing::show(options.listing, releases.clock, out, read).await
}

fn listed(difference: &Difference) -> Listed {
    Listed {
        name: difference.name.clone(),
        cells: vec![
            difference.namespace.clone(),
            difference.name.clone(),
            difference.recorded.to_owned(),
            difference.computed.to_owned(),
            difference.explanation.clone(),
        ],
        data: json!(difference),
    }
}

fn unread(why: &str) -> Failure {
    let what = "the verdicts cannot be compared";
    Failure::new("NT-RELEASE-0007", Exit::Failed, what, why)
        .remedy("use an account that may list releasepayloads, jobs and prowjobs in all namespaces, and read the Secret of run keys")
}

/// Makes another controller the owner of a stream.
pub(super) async fn move_to(
    owner: Owner,
    options: &MoveOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let releases = Releases::of_one_namespace(&options.scope).await?;
    let stream = releases.stream(&options.stream).await?;
    let key = Key::of(&stream.source);
    let new_owner = match owner {
        Owner::Original => "OpenShift's release-controller",
        Owner::Neaptide => "neap release controller",
    };
    let mut source = stream.source;
    loop {
        let map = Key::new(key.namespace(), &map_name(&source));
        let stored = releases.writer().find::<ConfigMap>(&map).await;
        let stored = stored.map_err(|error| write_failed(&map, &error))?;
        let text = stored
            .as_ref()
            .and_then(|map| map.data.as_ref()?.get(CONFIG_KEY));
        let step = next(&source, text.map(String::as_str), owner)
            .map_err(|refusal| refused(&key, &refusal))?;
        match step {
            Step::Done => {
                return print::text(out, &format!("{} {new_owner} owns {key}", symbols.done));
            }
            Step::Release {
                config,
                annotations,
                ..
            } => {
                if let Some(config) = config {
                    store(&releases, &map, stored, config).await?;
                }
                source = annotate(&releases, &source, &annotations).await?;
                let seconds = options.wait.as_secs();
                let text = format!(
                    "{} {key} has no owner for {seconds} seconds: what was begun ends meanwhile",
                    symbols.note
                );
                print::text(out, &text)?;
                releases.clock.sleep(options.wait).await;
            }
            Step::Take { annotations } => {
                source = annotate(&releases, &source, &annotations).await?;
            }
        }
    }
}

fn refused(key: &Key, refusal: &Refusal) -> Failure {
    let what = format!("the owner of {key} cannot change");
    Failure::new(
        "NT-RELEASE-0008",
        Exit::Refused,
        &what,
        &refusal.to_string(),
    )
    .remedy("correct what is named; the stream stays with its owner")
}

/// Changes annotations of the source, in the state that was read.
async fn annotate(
    releases: &Releases,
    source: &ImageStream,
    annotations: &serde_json::Value,
) -> Result<ImageStream, Failure> {
    let kind = ResourceKind::of::<ImageStream>();
    let key = Key::of(source);
    let change = json!({"metadata": {"annotations": annotations}});
    let writer = releases.writer();
    let written = writer.merge(&kind, &source.metadata, None, change).await;
    written.map_err(|error| write_failed(&key, &error))?;
    let found = writer.find::<ImageStream>(&key).await;
    let found = found.map_err(|error| write_failed(&key, &error))?;
    found.ok_or_else(|| refused(&key, &Refusal::NoStream))
}

/// Stores a configuration in its ConfigMap.
async fn store(
    releases: &Releases,
    key: &Key,
    stored: Option<ConfigMap>,
    config: String,
) -> Result<(), Failure> {
    let data = [(CONFIG_KEY.to_owned(), config)].into();
    let writer = releases.writer();
    let written = if let Some(found) = stored {
        let replaced = ConfigMap {
            data: Some(data),
            ..found
        };
        writer.replace(&replaced).await.map(drop)
    } else {
        let map = ConfigMap {
            metadata: ObjectMeta {
                name: Some(key.name().to_owned()),
                namespace: Some(key.namespace().to_owned()),
                ..ObjectMeta::default()
            },
            data: Some(data),
            ..ConfigMap::default()
        };
        writer.create(&map).await.map(drop)
    };
    written.map_err(|error| write_failed(key, &error))
}
