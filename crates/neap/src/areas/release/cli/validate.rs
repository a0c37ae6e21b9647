//! `neap release validate` and `apply`.

use std::io::Write;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use neap_kit::key::Key;
use neap_release::{
    api::annotations,
    config::ANNOTATION_LIMIT,
    hand_over::CONFIG_KEY,
    image_stream::api::ImageStream,
    validate::{Validation, directory},
};
use serde_json::json;

use super::{
    ApplyOptions, ValidateOptions, change,
    releases::{Releases, write_failed},
};
use crate::{
    exit::{Exit, Failure},
    inspect::print,
    symbols::Symbols,
};

pub(super) fn validate(
    options: &ValidateOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let checked = directory(&options.directory, options.qualifiers.as_deref());
    let checked = checked.map_err(|error| unreadable(&options.directory, &error))?;
    if checked.is_empty() {
        return Err(nothing(&options.directory));
    }
    valid(&checked, out)?;
    let text = match checked.configs.len() {
        1 => "1 configuration is valid".to_owned(),
        count => format!("{count} configurations are valid"),
    };
    print::text(out, &format!("{} {text}", symbols.done))
}

/// A directory without configurations is not valid: its name may be wrong.
fn nothing(directory: &std::path::Path) -> Failure {
    let why = format!("no *.json in {}", directory.display());
    let what = "there is no release configuration";
    Failure::new("NT-RELEASE-0001", Exit::NotFound, what, &why).remedy(
        "name a directory with release configurations, *.json, or with manifests of ImageStreams that have one",
    )
}

/// What is in manifests is not this command's to write: they have more than configurations.
fn only_manifests(directory: &std::path::Path) -> Failure {
    let what = "there is no file NAME.json with a configuration";
    let why = "the configurations there are in manifests";
    let apply = format!("apply them: kubectl apply -f {}", directory.display());
    Failure::new("NT-RELEASE-0001", Exit::Usage, what, why).remedy(apply)
}

fn unreadable(directory: &std::path::Path, error: &std::io::Error) -> Failure {
    let what = format!("cannot read {}", directory.display());
    Failure::new("NT-RELEASE-0001", Exit::NotFound, &what, &error.to_string())
        .remedy("name a directory with release configurations, *.json")
}

/// Prints what is wrong, and fails if anything is.
fn valid(checked: &Validation, out: &mut dyn Write) -> Result<(), Failure> {
    if checked.invalid.is_empty() {
        return Ok(());
    }
    for one in &checked.invalid {
        print::line(out, &format!("{}: {}", one.file, one.problem))?;
    }
    let why = match checked.invalid.len() {
        1 => "1 field is wrong".to_owned(),
        count => format!("{count} fields are wrong"),
    };
    let what = "the release configurations are not valid";
    Err(Failure::new("NT-RELEASE-0001", Exit::Refused, what, &why)
        .remedy("correct the fields that are named above; nothing was written"))
}

pub(super) async fn apply(
    options: &ApplyOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let checked = directory(&options.directory, None);
    let checked = checked.map_err(|error| unreadable(&options.directory, &error))?;
    if checked.is_empty() {
        return Err(nothing(&options.directory));
    }
    valid(&checked, out)?;
    if checked.own_files().next().is_none() {
        return Err(only_manifests(&options.directory));
    }
    let releases = Releases::of_one_namespace(&options.scope).await?;
    let namespace = releases
        .namespace
        .clone()
        .unwrap_or_else(|| releases.cluster.namespace.clone());
    let mut streams = Vec::new();
    for file in checked.own_files() {
        let name = std::path::Path::new(file)
            .file_stem()
            .and_then(|name| name.to_str());
        let key = Key::new(&namespace, name.unwrap_or_default());
        let found = releases.writer().find::<ImageStream>(&key).await;
        let Some(stream) = found.map_err(|error| write_failed(&key, &error))? else {
            let why = format!("{file} is for the ImageStream {key}, which does not exist");
            return Err(Failure::new(
                "NT-RELEASE-0002",
                Exit::NotFound,
                "ImageStream not found",
                &why,
            )
            .remedy("create the ImageStream first; nothing was written"));
        };
        streams.push((file, stream));
    }
    for (file, stream) in streams {
        let path = options.directory.join(file);
        let text = std::fs::read_to_string(&path).map_err(|error| unreadable(&path, &error))?;
        let text = compact(&text);
        apply_one(&releases, &stream, &text).await?;
        let name = stream.metadata.name.as_deref().unwrap_or_default();
        print::text(
            out,
            &format!(
                "{} {namespace}/{name} has the configuration of {file}",
                symbols.done
            ),
        )?;
    }
    Ok(())
}

/// The same JSON without spaces: an annotation has little room.
fn compact(text: &str) -> String {
    let value: Option<serde_json::Value> = serde_json::from_str(text).ok();
    value.map_or_else(|| text.to_owned(), |value| value.to_string())
}

async fn apply_one(releases: &Releases, stream: &ImageStream, text: &str) -> Result<(), Failure> {
    if text.len() <= ANNOTATION_LIMIT {
        let annotations = json!({annotations::CONFIG: text, annotations::CONFIG_REF: null});
        return change::annotate(releases, stream, annotations).await;
    }
    let meta = &stream.metadata;
    let name = format!(
        "{}-release-config",
        meta.name.as_deref().unwrap_or_default()
    );
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            namespace: meta.namespace.clone(),
            ..ObjectMeta::default()
        },
        data: Some([(CONFIG_KEY.to_owned(), text.to_owned())].into()),
        ..ConfigMap::default()
    };
    let key = Key::of(&map);
    let writer = releases.writer();
    let written = match writer.find::<ConfigMap>(&key).await {
        Ok(Some(found)) => {
            let replaced = ConfigMap {
                data: map.data,
                ..found
            };
            writer.replace(&replaced).await.map(drop)
        }
        Ok(None) => writer.create(&map).await.map(drop),
        Err(error) => Err(error),
    };
    written.map_err(|error| write_failed(&key, &error))?;
    let annotations = json!({annotations::CONFIG: null, annotations::CONFIG_REF: name});
    change::annotate(releases, stream, annotations).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{ClusterOptions, Scope};

    async fn applied(directory: &std::path::Path, all_namespaces: bool) -> String {
        let options = ApplyOptions {
            directory: directory.to_owned(),
            scope: Scope {
                cluster: ClusterOptions::default(),
                namespace: None,
                all_namespaces,
            },
        };
        let failure = apply(&options, Symbols::ASCII, &mut Vec::new()).await;
        format!("{:?}", failure.unwrap_err())
    }

    #[tokio::test]
    async fn configurations_in_manifests_are_left_to_kubectl() {
        let folder = tempfile::tempdir().unwrap();
        let failure = applied(folder.path(), false).await;
        assert!(
            failure.contains("there is no release configuration"),
            "{failure}"
        );
        let config = json!({"name": "a", "to": "release"}).to_string();
        let manifest = json!({
            "apiVersion": "image.openshift.io/v1", "kind": "ImageStream",
            "metadata": {"name": "s", "annotations": {annotations::CONFIG: config}},
        });
        std::fs::write(folder.path().join("s.yaml"), manifest.to_string()).unwrap();
        let failure = applied(folder.path(), false).await;
        let command = format!("kubectl apply -f {}", folder.path().display());
        assert!(failure.contains(&command), "{failure}");
    }

    #[tokio::test]
    async fn what_is_written_is_in_one_namespace() {
        let folder = tempfile::tempdir().unwrap();
        let config = json!({"name": "a", "to": "release"}).to_string();
        std::fs::write(folder.path().join("s.json"), config).unwrap();
        let failure = applied(folder.path(), true).await;
        assert!(failure.contains("name the namespace with -n"), "{failure}");
    }
}
