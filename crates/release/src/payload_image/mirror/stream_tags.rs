//! Makes the images of a payload the tags of an ImageStream, which then imports them.

use kube::{Api, Client};
use neap_kit::{
    apply::{DesiredObject, Error as WriteError, IfExists, PlannedChange, ResourceKind, Writer},
    key::Key,
};
use serde_json::json;

use super::names::{self, source};
use crate::{
    image_stream::api::{
        ImageSource, ImageStream, ImageStreamSpec, ImportMode, ImportPolicy, TagReference,
    },
    payload_image::reader::Payload,
};

/// The tag of the payload itself.
const PAYLOAD: &str = "release";
/// How often the change is repeated in a newer state of the stream.
const MAX_WRITES: u32 = 5;

/// Why the tags were not set.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The stream cannot be read.
    #[error("image stream {stream} cannot be read")]
    Read {
        /// The stream.
        stream: Key,
        /// Why.
        source: kube::Error,
    },
    /// The stream cannot be written.
    #[error("the tags of image stream {stream} cannot be set")]
    Write {
        /// The stream.
        stream: Key,
        /// Why.
        source: WriteError,
    },
}

/// The tags for the images of a payload, and for itself.
pub fn tags(
    payload: &Payload,
    keep_manifest_list: bool,
    insecure: bool,
) -> Result<Vec<TagReference>, names::Error> {
    let policy = ImportPolicy {
        insecure,
        scheduled: false,
        import_mode: keep_manifest_list.then_some(ImportMode::PreserveOriginal),
    };
    let tag = |name: &str, image: String| TagReference {
        name: name.to_owned(),
        from: Some(ImageSource::image(image)),
        import_policy: policy,
        ..TagReference::default()
    };
    let images = payload.contents.references.spec.tags.iter();
    let images = images.map(|image| Ok(tag(&image.name, source(image)?.to_string())));
    let mut tags = images.collect::<Result<Vec<_>, _>>()?;
    tags.push(tag(PAYLOAD, payload.by_digest().to_string()));
    Ok(tags)
}

/// The tags of a stream after `wanted` were set; others stay as they are. None if nothing changes.
pub fn merged(before: &[TagReference], wanted: &[TagReference]) -> Option<Vec<TagReference>> {
    let mut after = before.to_vec();
    for tag in wanted {
        match after.iter_mut().find(|it| it.name == tag.name) {
            Some(known) if known.from == tag.from && known.import_policy == tag.import_policy => {}
            Some(known) => {
                known.from.clone_from(&tag.from);
                known.import_policy = tag.import_policy;
                // The server numbers the change; the old number would say that it was imported.
                known.generation = None;
            }
            None => after.push(tag.clone()),
        }
    }
    (after != before).then_some(after)
}

/// Sets tags of a stream, which is created if it does not exist. Whatever others change meanwhile stays.
pub async fn set_tags(
    writer: &Writer,
    client: &Client,
    stream: &Key,
    wanted: &[TagReference],
) -> Result<(), Error> {
    let api: Api<ImageStream> = Api::namespaced(client.clone(), stream.namespace());
    for attempt in 1.. {
        let found = api.get_opt(stream.name()).await;
        let found = found.map_err(|source| Error::Read {
            stream: stream.clone(),
            source,
        })?;
        let Some(change) = change(stream, found, wanted) else {
            return Ok(());
        };
        match writer.execute_change(change).await {
            Ok(_) => return Ok(()),
            Err(WriteError::Conflict(_)) if attempt < MAX_WRITES => {}
            Err(source) => {
                return Err(Error::Write {
                    stream: stream.clone(),
                    source,
                });
            }
        }
    }
    Ok(())
}

fn change(
    stream: &Key,
    found: Option<ImageStream>,
    wanted: &[TagReference],
) -> Option<PlannedChange> {
    let reason = "the images of a payload are mirrored into the stream".to_owned();
    let Some(found) = found else {
        let spec = ImageStreamSpec {
            tags: wanted.to_vec(),
            ..ImageStreamSpec::default()
        };
        let mut created = ImageStream::new(stream.name(), spec);
        created.metadata.namespace = Some(stream.namespace().to_owned());
        return Some(PlannedChange::Post {
            object: DesiredObject::of(&created),
            owner: None,
            if_exists: IfExists::Conflict,
            reason,
        });
    };
    let tags = merged(&found.spec.tags, wanted)?;
    Some(PlannedChange::Merge {
        kind: ResourceKind::of::<ImageStream>(),
        metadata: Box::new(found.metadata),
        subresource: None,
        patch: json!({"spec": {"tags": tags}}),
        reason,
    })
}

/// Tags whose image is not there yet, and tags whose import failed with the message.
pub fn open_imports(stream: &ImageStream, wanted: &[TagReference]) -> (Vec<String>, Vec<String>) {
    let (mut pending, mut failed) = (Vec::new(), Vec::new());
    for tag in wanted {
        let status = stream
            .status
            .as_ref()
            .and_then(|status| status.tag(&tag.name));
        let failure = status
            .filter(|status| status.import_failed())
            .and_then(|status| status.import_condition());
        if let Some(condition) = failure {
            failed.push(format!("{}: {}", tag.name, condition.message));
        } else if status.is_none_or(|status| status.items.is_empty()) {
            pending.push(tag.name.clone());
        }
    }
    (pending, failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload_image::info::tests::payload;

    #[test]
    fn images_become_tags_and_the_payload_is_one_of_them() {
        let found = payload("4.99.1", &[("cli", "1", &[]), ("demo", "2", &[])]);
        let all = tags(&found, true, false).unwrap();
        let names: Vec<_> = all.iter().map(|tag| tag.name.as_str()).collect();
        assert_eq!(names, ["cli", "demo", "release"]);
        assert!(all.iter().all(|tag| {
            let from = tag.from.as_ref().unwrap();
            from.name.contains("@sha256:")
                && tag.import_policy.import_mode == Some(ImportMode::PreserveOriginal)
        }));
    }

    #[test]
    fn tags_of_others_stay_and_nothing_is_written_twice() {
        let found = payload("4.99.1", &[("cli", "1", &[])]);
        let wanted = tags(&found, false, false).unwrap();
        let other = TagReference {
            name: "other".to_owned(),
            generation: Some(3),
            ..TagReference::default()
        };
        let old = TagReference {
            name: "cli".to_owned(),
            generation: Some(2),
            annotations: [("kept".to_owned(), "yes".to_owned())].into(),
            ..TagReference::default()
        };
        let after = merged(&[other.clone(), old], &wanted).unwrap();
        assert_eq!(after[0], other);
        assert_eq!(after[1].from, wanted[0].from);
        assert_eq!(
            (after[1].generation, &after[1].annotations["kept"][..]),
            (None, "yes")
        );
        assert_eq!(after.len(), 3);
        assert_eq!(merged(&after, &wanted), None);
    }
}
