//! An OCI image layout in one tar file.
//!
//! Nothing in it depends on when, where or by whom it was built: entries have a fixed order, owner and
//! time, so equal content has an equal digest.

use std::{fs::File, io::Write, path::Path};

use anyhow::Result;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// A file or a folder of the image.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    path: &'static str,
    mode: u32,
    /// None for a folder.
    content: Option<Vec<u8>>,
}

impl Entry {
    pub(crate) fn file(path: &'static str, mode: u32, content: Vec<u8>) -> Self {
        Self {
            path,
            mode,
            content: Some(content),
        }
    }

    pub(crate) fn folder(path: &'static str, mode: u32) -> Self {
        Self {
            path,
            mode,
            content: None,
        }
    }
}

/// An image with one layer.
#[derive(Debug, Clone)]
pub(crate) struct Archive {
    pub(crate) entries: Vec<Entry>,
    pub(crate) config: Value,
    pub(crate) labels: Vec<(&'static str, String)>,
    pub(crate) tag: String,
}

/// What was written.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) digest: String,
}

impl Archive {
    /// Writes the archive.
    pub(crate) fn write(&self, path: &Path) -> Result<Written> {
        let mut blobs = Vec::new();
        let mut add = |media_type: &str, content: Vec<u8>| {
            let descriptor = descriptor(media_type, &content);
            blobs.push((descriptor["digest"].clone(), content));
            descriptor
        };
        let layer = layer(&self.entries)?;
        let diff_id = digest(&layer);
        let layer = add(LAYER, layer);
        let labels: serde_json::Map<_, _> = self
            .labels
            .iter()
            .map(|(name, value)| ((*name).to_owned(), json!(value)))
            .collect();
        let mut config = self.config.clone();
        config["Labels"] = json!(labels);
        let config = add(
            CONFIG,
            serde_json::to_vec(&json!({
                "architecture": "amd64",
                "os": "linux",
                "created": "1970-01-01T00:00:00Z",
                "config": config,
                "rootfs": {"type": "layers", "diff_ids": [diff_id]},
                "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "cargo xtask image"}],
            }))?,
        );
        let mut image = add(
            MANIFEST,
            serde_json::to_vec(&json!({
                "schemaVersion": 2, "mediaType": MANIFEST,
                "config": config, "layers": [layer], "annotations": labels,
            }))?,
        );
        let written = image["digest"].as_str().unwrap_or_default().to_owned();
        image["annotations"] = json!({"org.opencontainers.image.ref.name": self.tag});
        image["platform"] = json!({"architecture": "amd64", "os": "linux"});
        let index = json!({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [image],
        });
        let mut tar = tar::Builder::new(File::create(path)?);
        append(
            &mut tar,
            "oci-layout",
            0o644,
            br#"{"imageLayoutVersion":"1.0.0"}"#,
        )?;
        append(&mut tar, "index.json", 0o644, &serde_json::to_vec(&index)?)?;
        for (name, content) in &blobs {
            let name = name.as_str().unwrap_or_default().replace(':', "/");
            append(&mut tar, &format!("blobs/{name}"), 0o644, content)?;
        }
        tar.into_inner()?.flush()?;
        Ok(Written { digest: written })
    }
}

/// The layer: a tar file of all entries.
fn layer(entries: &[Entry]) -> Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    for entry in entries {
        if let Some(content) = &entry.content {
            append(&mut tar, entry.path, entry.mode, content)?;
        } else {
            let mut header = header(entry.mode, 0);
            header.set_entry_type(tar::EntryType::Directory);
            tar.append_data(&mut header, format!("{}/", entry.path), &[][..])?;
        }
    }
    Ok(tar.into_inner()?)
}

fn append(tar: &mut tar::Builder<impl Write>, path: &str, mode: u32, content: &[u8]) -> Result<()> {
    let mut header = header(mode, content.len() as u64);
    Ok(tar.append_data(&mut header, path, content)?)
}

fn header(mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_mode(mode);
    header.set_size(size);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}

fn descriptor(media_type: &str, content: &[u8]) -> Value {
    json!({"mediaType": media_type, "digest": digest(content), "size": content.len()})
}

/// The digest of some content, as OCI writes it.
pub(crate) fn digest(content: &[u8]) -> String {
    let hash = Sha256::digest(content);
    let digits = hash.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let hex: String = digits
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect();
    format!("sha256:{hex}")
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, io::Read};

    use super::*;

    fn archive() -> Archive {
        Archive {
            entries: vec![
                Entry::folder("etc", 0o755),
                Entry::file("neap", 0o755, b"program".to_vec()),
            ],
            config: json!({"Entrypoint": ["/neap"]}),
            labels: vec![("a", "b".to_owned())],
            tag: "neap:1".to_owned(),
        }
    }

    fn files(path: &Path) -> BTreeMap<String, Vec<u8>> {
        let mut archive = tar::Archive::new(File::open(path).unwrap());
        let entries = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let name = entry.path().unwrap().display().to_string();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            (name, content)
        });
        entries.collect()
    }

    #[test]
    fn equal_content_has_an_equal_digest_and_other_content_another() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        let first = archive().write(&one).unwrap();
        let second = archive().write(&two).unwrap();
        assert_eq!(first.digest, second.digest);
        assert_eq!(std::fs::read(&one).unwrap(), std::fs::read(&two).unwrap());
        let mut other = archive();
        other.entries[1] = Entry::file("neap", 0o755, b"another".to_vec());
        assert_ne!(other.write(&two).unwrap().digest, first.digest);
    }

    #[test]
    fn every_blob_has_the_content_that_its_name_says_and_the_manifest_names_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image");
        let written = archive().write(&path).unwrap();
        let files = files(&path);
        let blobs = files
            .iter()
            .filter_map(|(name, content)| Some((name.strip_prefix("blobs/sha256/")?, content)));
        let mut count = 0;
        for (name, content) in blobs {
            assert_eq!(format!("sha256:{name}"), digest(content));
            count += 1;
        }
        assert_eq!(count, 3, "layer, config and manifest");
        let index: Value = serde_json::from_slice(&files["index.json"]).unwrap();
        assert_eq!(index["manifests"][0]["digest"], json!(written.digest));
        let manifest = &files[&format!("blobs/{}", written.digest.replace(':', "/"))];
        let manifest: Value = serde_json::from_slice(manifest).unwrap();
        let layer = manifest["layers"][0]["digest"].as_str().unwrap();
        let layer = &files[&format!("blobs/{}", layer.replace(':', "/"))];
        let mut layer = tar::Archive::new(&layer[..]);
        let entries = layer.entries().unwrap().map(|entry| {
            let entry = entry.unwrap();
            (
                entry.path().unwrap().display().to_string(),
                entry.header().mode().unwrap(),
            )
        });
        let expected = [("etc/".to_owned(), 0o755), ("neap".to_owned(), 0o755)];
        assert_eq!(entries.collect::<Vec<_>>(), expected);
    }
}
