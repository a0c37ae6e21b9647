//! Takes files out of a payload.
//!
//! Files are written as they are in the payload, to the byte. The original rewrites manifests and so loses
//! their comments and their form.

use serde_json::Value;

use super::{
    contents::{self, Contents},
    image_references,
    manifest_file::{self, is_manifest, to_yaml},
    release_metadata,
};

/// A file to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputFile {
    /// Its name, without folders.
    pub name: String,
    /// Its content.
    pub content: Vec<u8>,
}

/// The files that were asked for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Extracted {
    /// The files.
    pub files: Vec<OutputFile>,
    /// Manifests that cannot be parsed, and why.
    pub problems: Vec<String>,
}

/// Why files cannot be taken out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such file.
    #[error(
        "the payload {payload} has no file {name:?}; it has {count} files, which --to extracts"
    )]
    NoFile {
        /// The payload.
        payload: String,
        /// The name.
        name: String,
        /// The number of files that it has.
        count: usize,
    },
    /// The cloud is not known.
    #[error("cloud {0:?} is not known; known are {known}", known = CLOUDS.map(|(name, _)| name).join(", "))]
    Cloud(String),
    /// The documents of the payload.
    #[error(transparent)]
    Contents(#[from] contents::Error),
    /// A manifest that cannot be written.
    #[error("{file} cannot be written")]
    Manifest {
        /// The file.
        file: String,
        /// Why.
        source: manifest_file::Error,
    },
}

/// Clouds, and the beginning of the kind of their `providerSpec`.
const CLOUDS: [(&str, &str); 10] = [
    ("aws", "AWS"),
    ("azure", "Azure"),
    ("gcp", "GCP"),
    ("alibabacloud", "AlibabaCloud"),
    ("ibmcloud", "IBMCloud"),
    ("nutanix", "Nutanix"),
    ("openstack", "OpenStack"),
    ("ovirt", "Ovirt"),
    ("powervs", "IBMCloudPowerVS"),
    ("vsphere", "VSphere"),
];

/// All files: the two documents, manifests and others.
pub fn all(contents: &Contents) -> Result<Extracted, Error> {
    let mut found = Extracted {
        files: documents(contents)?,
        problems: Vec::new(),
    };
    for file in &contents.files {
        if is_manifest(&file.name)
            && let Err(error) = manifest_file::documents(&file.content)
        {
            found.problems.push(format!("{}: {error}", file.name));
        }
        found.files.push(OutputFile {
            name: file.name.clone(),
            content: file.content.clone(),
        });
    }
    Ok(found)
}

/// One file.
pub fn one(contents: &Contents, name: &str) -> Result<Vec<u8>, Error> {
    let mut files = all(contents)?.files;
    let count = files.len();
    match files.iter().position(|file| file.name == name) {
        Some(at) => Ok(files.swap_remove(at).content),
        None => Err(Error::NoFile {
            payload: contents.name().to_owned(),
            name: name.to_owned(),
            count,
        }),
    }
}

/// The requests for credentials, each in a manifest with the name of its file; of one cloud, if it is given.
pub fn credentials_requests(contents: &Contents, cloud: Option<&str>) -> Result<Extracted, Error> {
    let provider = match cloud {
        Some(cloud) => {
            let known = CLOUDS
                .iter()
                .find(|(name, _)| *name == cloud.to_ascii_lowercase());
            let (_, prefix) = known.ok_or_else(|| Error::Cloud(cloud.to_owned()))?;
            Some(format!("{prefix}ProviderSpec"))
        }
        None => None,
    };
    let mut found = Extracted::default();
    for (name, file) in contents.manifests() {
        let documents = match manifest_file::documents(&file.content) {
            Ok(documents) => documents,
            Err(error) => {
                found.problems.push(format!("{name}: {error}"));
                continue;
            }
        };
        let wanted = documents
            .iter()
            .filter(|it| is_request(it, provider.as_deref()));
        let texts = wanted.map(to_yaml).collect::<Result<Vec<_>, _>>();
        let texts = texts.map_err(|source| Error::Manifest {
            file: name.to_owned(),
            source,
        })?;
        if !texts.is_empty() {
            found.files.push(OutputFile {
                name: name.to_owned(),
                content: texts.concat().into_bytes(),
            });
        }
    }
    Ok(found)
}

fn is_request(document: &Value, provider: Option<&str>) -> bool {
    document["kind"] == "CredentialsRequest"
        && document["apiVersion"] == "cloudcredential.openshift.io/v1"
        && provider.is_none_or(|kind| document["spec"]["providerSpec"]["kind"] == kind)
}

fn documents(contents: &Contents) -> Result<Vec<OutputFile>, Error> {
    let mut files = vec![OutputFile {
        name: image_references::FILE.to_owned(),
        content: contents.references_bytes()?,
    }];
    files.extend(contents.metadata_bytes()?.map(|content| OutputFile {
        name: release_metadata::FILE.to_owned(),
        content,
    }));
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload_image::{info::tests::payload, manifest_file::ManifestFile};

    fn contents(files: &[(&str, &str)]) -> Contents {
        let mut contents = payload("4.99.0", &[("cli", "1", &[])]).contents;
        contents.files = files
            .iter()
            .map(|&(name, content)| ManifestFile {
                name: name.to_owned(),
                mtime: 0,
                content: content.into(),
            })
            .collect();
        contents
    }

    fn request(kind: &str) -> String {
        format!(
            "apiVersion: cloudcredential.openshift.io/v1\nkind: CredentialsRequest\nspec:\n  providerSpec:\n    kind: {kind}ProviderSpec\n"
        )
    }

    #[test]
    fn files_keep_their_bytes_and_what_cannot_be_parsed_is_named() {
        let files = [
            ("a.yaml", "# kept\nkind: A\n"),
            ("b.yaml", "a: ["),
            ("notes", "text"),
        ];
        let found = all(&contents(&files)).unwrap();
        let names: Vec<_> = found.files.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "image-references",
                "release-metadata",
                "a.yaml",
                "b.yaml",
                "notes"
            ]
        );
        assert_eq!(found.files[2].content, b"# kept\nkind: A\n");
        assert_eq!(found.problems.len(), 1);
        assert!(
            found.problems[0].starts_with("b.yaml"),
            "{:?}",
            found.problems
        );
        assert_eq!(one(&contents(&files), "notes").unwrap(), b"text");
        let missing = one(&contents(&files), "nothing").unwrap_err().to_string();
        assert!(
            missing.contains("4.99.0") && missing.contains("nothing"),
            "{missing}"
        );
    }

    #[test]
    fn requests_for_credentials_are_chosen_by_cloud() {
        let both = format!(
            "{}---\n{}---\nkind: Other\napiVersion: v1\n",
            request("AWS"),
            request("GCP")
        );
        let contents = contents(&[
            ("both.yaml", &both),
            ("azure.yaml", &request("Azure")),
            ("x.yaml", "kind: A\n"),
        ]);
        assert_eq!(
            credentials_requests(&contents, None).unwrap().files.len(),
            2
        );
        let aws = credentials_requests(&contents, Some("aws")).unwrap().files;
        assert_eq!(aws.len(), 1);
        let text = String::from_utf8(aws[0].content.clone()).unwrap();
        assert!(
            text.starts_with("---\n") && text.contains("AWSProviderSpec") && !text.contains("GCP"),
            "{text}"
        );
        assert!(matches!(
            credentials_requests(&contents, Some("moon")),
            Err(Error::Cloud(_))
        ));
    }
}
