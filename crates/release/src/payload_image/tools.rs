//! Programs of a payload: the clients and installers that its images carry for other systems.
//!
//! [`table`] says what there is and where; [`placeholders`] writes the release into a program, [`archive`] packs
//! it. The same payload gives the same archives.

pub mod table;

pub mod placeholders;

pub mod archive;

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt::Write};

use self::{placeholders::Placeholder, table::Tool};
use super::{layer_files, reader::Payload};
use crate::oci::{
    client::{Error as RegistryError, RegistryClient},
    digest::Digest,
    layer::{EntryHead, EntryKind, LayerEntry, Limits},
    platform::PlatformFilter,
    reference::{ImageRef, InvalidRef},
};

/// Links that are followed from a program to its file.
const MAX_LINKS: usize = 5;

/// Why a program was not extracted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The payload does not have the image.
    #[error("{tool} is in the image of {component}, which the payload does not have")]
    NoImage {
        /// The program.
        tool: String,
        /// The component.
        component: &'static str,
    },
    /// The name of the image.
    #[error("component {component}")]
    Reference {
        /// The component.
        component: &'static str,
        /// Why.
        source: InvalidRef,
    },
    /// The registry.
    #[error("component {component}")]
    Registry {
        /// The component.
        component: &'static str,
        /// Why.
        source: RegistryError,
    },
    /// A layer.
    #[error("component {component}")]
    Layer {
        /// The component.
        component: &'static str,
        /// Why.
        source: layer_files::Error,
    },
    /// The image does not have the file.
    #[error("component {component} ({image}) has no file {path}")]
    NoFile {
        /// The component.
        component: &'static str,
        /// The image.
        image: String,
        /// The file.
        path: &'static str,
    },
    /// The value does not fit.
    #[error("{tool}")]
    Placeholder {
        /// The program.
        tool: String,
        /// Why.
        source: placeholders::TooLong,
    },
}

/// A program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Its bytes.
    pub content: Vec<u8>,
    /// Seconds since 1970.
    pub mtime: i64,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// Takes a program out of a payload, and writes the release into it.
pub async fn extract(
    client: &RegistryClient,
    payload: &Payload,
    tool: &Tool,
) -> Result<Program, Error> {
    let component = tool.component;
    let tag = payload.contents.references.tag(component);
    let spec = tag.and_then(|tag| tag.pull_spec());
    let spec = spec.ok_or_else(|| Error::NoImage {
        tool: tool.to_string(),
        component,
    })?;
    let image: ImageRef = spec
        .parse()
        .map_err(|source| Error::Reference { component, source })?;
    let entry = find(client, payload, tool, &image).await?;
    let mut content = entry.content;
    let mut warnings = Vec::new();
    for (placeholder, value) in values(payload, tool) {
        let found = placeholders::replace(&mut content, placeholder, &value);
        let found = found.map_err(|source| Error::Placeholder {
            tool: tool.to_string(),
            source,
        })?;
        if !found {
            warnings.push(format!("{tool} has no place for the {placeholder}"));
        }
    }
    if tool.needs_signature() && warnings.is_empty() {
        warnings.push(format!(
            "{tool} was changed and not signed again, which macOS on arm64 asks for: codesign -s - FILE"
        ));
    }
    Ok(Program {
        content,
        mtime: entry.head.mtime,
        warnings,
    })
}

/// What is written into a program.
fn values(payload: &Payload, tool: &Tool) -> Vec<(Placeholder, String)> {
    let mut values = vec![(Placeholder::Version, payload.contents.name().to_owned())];
    if tool.is_installer() {
        let config = &payload.config;
        let architecture = format!("{}/{}", config.os, config.architecture);
        values.push((Placeholder::Image, payload.by_digest().to_string()));
        values.push((Placeholder::Architecture, architecture));
    }
    values.retain(|(placeholder, _)| tool.takes(*placeholder));
    values
}

/// The file of a program: the newest layer that has it counts.
async fn find(
    client: &RegistryClient,
    payload: &Payload,
    tool: &Tool,
    image: &ImageRef,
) -> Result<LayerEntry, Error> {
    let component = tool.component;
    let registry = |source| Error::Registry { component, source };
    let outer = client.manifest(image).await.map_err(registry)?;
    let manifest = match client.image_of(image, &outer, &PlatformFilter::Any).await {
        Ok(manifest) => manifest,
        Err(RegistryError::Platform { .. }) => {
            let pattern = format!("^linux/{}$", payload.config.architecture);
            // The architecture of a configuration is a word.
            let filter = PlatformFilter::parse(&pattern);
            let filter = filter.unwrap_or_else(|_| PlatformFilter::linux_amd64());
            let chosen = client.image_of(image, &outer, &filter).await;
            chosen.map_err(registry)?
        }
        Err(error) => return Err(registry(error)),
    };
    let layers = manifest.image().map(|it| it.layers().clone());
    let layers = layers.unwrap_or_default();
    let mut path = tool.path.to_owned();
    for _ in 0..MAX_LINKS {
        let mut found = None;
        for descriptor in layers.iter().rev() {
            let wanted = path.clone();
            let is_wanted = move |head: &EntryHead| head.name == wanted;
            let limits = Limits::for_programs(descriptor.size());
            let entries = layer_files::read(client, image, descriptor, limits, is_wanted).await;
            let entries = entries.map_err(|source| Error::Layer { component, source })?;
            found = entries.into_iter().next_back();
            if found.is_some() {
                break;
            }
        }
        let missing = || Error::NoFile {
            component,
            image: image.to_string(),
            path: tool.path,
        };
        let entry = found.ok_or_else(missing)?;
        let link = entry.head.link.clone().unwrap_or_default();
        path = match entry.head.kind {
            EntryKind::File => return Ok(entry),
            EntryKind::HardLink => link.trim_start_matches('/').to_owned(),
            EntryKind::Symlink => linked(&path, &link).ok_or_else(missing)?,
            _ => return Err(missing()),
        };
    }
    Err(Error::NoFile {
        component,
        image: image.to_string(),
        path: tool.path,
    })
}

/// Where a symbolic link leads inside the image; none if it leads out.
fn linked(path: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = if link.starts_with('/') {
        Vec::new()
    } else {
        path.split('/').collect()
    };
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The content of `sha256sum.txt`, from the digests of files by their names.
pub fn checksums(files: &BTreeMap<String, Digest>) -> String {
    let mut lines = String::new();
    for (name, digest) in files {
        // Writing to a string does not fail.
        let _ = writeln!(lines, "{}  {name}", digest.digest());
    }
    lines
}

#[cfg(test)]
mod link_tests {
    use super::*;
    use crate::oci::digest::sha256;

    #[test]
    fn links_stay_inside_the_image() {
        for (path, link, target) in [
            ("usr/bin/oc", "kubectl", Some("usr/bin/kubectl")),
            ("usr/bin/oc", "../share/oc", Some("usr/share/oc")),
            ("usr/bin/oc", "/opt/./oc", Some("opt/oc")),
            ("oc", "../../etc/passwd", None),
        ] {
            assert_eq!(linked(path, link).as_deref(), target, "{link}");
        }
    }

    #[test]
    fn checksums_are_those_of_sha256sum() {
        let files = BTreeMap::from([("empty".to_owned(), sha256(b""))]);
        assert_eq!(
            checksums(&files),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  empty\n"
        );
    }
}
