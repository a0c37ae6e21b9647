//! Into an ImageStream, which imports the images by itself.

use std::{io::Write, time::Duration};

use kube::Api;
use neap_kit::{apply::Writer, clock::Clock, key::Key, lease::Leadership};
use neap_release::{
    image_stream::api::{ImageStream, TagReference},
    payload_image::mirror::stream_tags,
};

use super::{
    super::{MirrorOptions, failure::usage},
    read,
};
use crate::{
    exit::{Exit, Failure, chain},
    inspect::{cluster::Cluster, print},
};

/// The field manager of the tags.
const MANAGER: &str = "neap-release-mirror";
/// How long imports are waited for.
const WAIT_TIMEOUT: Duration = Duration::from_mins(3);
const POLL_INTERVAL: Duration = Duration::from_secs(1);

pub(super) async fn run(
    options: &MirrorOptions,
    name: &str,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let cluster = Cluster::connect(&options.cluster, None).await?;
    let namespace = options.namespace.as_ref().unwrap_or(&cluster.namespace);
    let key = Key::new(namespace, name);
    let payload = read(options).await?;
    let insecure = options.registry.insecure;
    let tags = stream_tags::tags(&payload, options.keep_manifest_list, insecure);
    let tags = tags.map_err(|error| {
        let remedy = "make a payload whose images are all named by digest";
        usage("cannot mirror the payload", &chain(&error), remedy)
    })?;
    if options.dry_run {
        return tags.iter().try_for_each(|tag| {
            let image = tag.from.as_ref().map_or("", |from| &from.name);
            print::text(out, &format!("{image} {key}:{}", tag.name))
        });
    }
    let clock = Clock::system();
    let leadership = Leadership::without_election(clock);
    let writer = Writer::new(cluster.client.clone(), MANAGER, leadership, clock);
    let set = stream_tags::set_tags(&writer, &cluster.client, &key, &tags).await;
    set.map_err(|error| not_set(&key, &error))?;
    wait(&cluster, &key, &tags, clock).await?;
    print::text(out, &format!("{} images in image stream {key}", tags.len()))
}

fn not_set(key: &Key, error: &stream_tags::Error) -> Failure {
    let what = "the payload was not mirrored";
    if is_without_namespace(error) {
        let namespace = key.namespace();
        let why = format!("namespace {namespace} does not exist");
        return Failure::new("NT-RELEASE-0103", Exit::NotFound, what, &why)
            .remedy(format!("kubectl create namespace {namespace}"));
    }
    let remedy = "check your rights: kubectl auth can-i patch imagestreams.image.openshift.io";
    Failure::new("NT-RELEASE-0106", Exit::Failed, what, &chain(error)).remedy(remedy)
}

/// Whether the stream cannot be created because its namespace does not exist.
fn is_without_namespace(error: &stream_tags::Error) -> bool {
    let stream_tags::Error::Write {
        source: neap_kit::apply::Error::Refused { source, .. },
        ..
    } = error
    else {
        return false;
    };
    let kube::Error::Api(status) = &**source else {
        return false;
    };
    status.is_not_found() && status.message.starts_with("namespaces ")
}

/// Waits until all tags have an image, or some have failed and no other is still being imported.
async fn wait(
    cluster: &Cluster,
    key: &Key,
    tags: &[TagReference],
    clock: Clock,
) -> Result<(), Failure> {
    let api: Api<ImageStream> = Api::namespaced(cluster.client.clone(), key.namespace());
    let begun = clock.uptime();
    loop {
        let found = api.get(key.name()).await;
        let found =
            found.map_err(|error| cluster.failed(&format!("image stream {key}"), &error))?;
        let (pending, failed) = stream_tags::open_imports(&found, tags);
        if pending.is_empty() && failed.is_empty() {
            return Ok(());
        }
        let late = clock.uptime().saturating_sub(begun) > WAIT_TIMEOUT;
        if late || pending.is_empty() {
            let mut why = failed;
            if !pending.is_empty() {
                why.push(format!("not imported yet: {}", pending.join(", ")));
            }
            let what = format!("the tags of {key} are set, and not all images are imported");
            return Err(
                Failure::new("NT-RELEASE-0106", Exit::Failed, &what, &why.join("; "))
                    .remedy("imports are repeated; kubectl get imagestreams shows how many fail"),
            );
        }
        clock.sleep(POLL_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_that_does_not_exist_is_named_with_the_command_that_creates_it() {
        let refused = |message: &str| {
            let status = kube::core::Status::failure(message, "NotFound").with_code(404);
            let key = Key::new("ocp", "4.99");
            let source = neap_kit::apply::Error::Refused {
                key: key.clone(),
                source: Box::new(kube::Error::Api(status.boxed())),
            };
            let stream = key.clone();
            not_set(&key, &stream_tags::Error::Write { stream, source })
        };
        let failure = format!("{:?}", refused("namespaces \"ocp\" not found"));
        for text in [
            "NotFound",
            "namespace ocp does not exist",
            "kubectl create namespace ocp",
        ] {
            assert!(failure.contains(text), "{failure}");
        }
        let failure = format!("{:?}", refused("the server could not find it"));
        assert!(!failure.contains("kubectl create"), "{failure}");
        assert!(!failure.contains("Status {"), "{failure}");
    }
}
