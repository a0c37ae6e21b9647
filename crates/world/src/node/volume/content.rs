//! What is in a volume. Pure.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use k8s_openapi::api::core::v1::{DownwardAPIVolumeFile, KeyToPath, Volume, VolumeProjection};

use super::Wanted;
use crate::{
    node::{field, pod::Obstacle, source::Sources},
    workload::claim_name,
};

/// What a volume is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Files that the node writes.
    Files(Files),
    /// A folder or file of the machine.
    Machine(PathBuf, Wanted),
    /// A folder that lasts as long as the pod.
    Empty,
}

/// Files by their paths in the volume.
pub type Files = BTreeMap<PathBuf, Text>;

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// What is in it.
    pub bytes: Vec<u8>,
    /// Who may read it.
    pub mode: u32,
}

const READABLE: i32 = 0o644;

/// What `volume` should contain, or why that cannot be said.
pub fn content(volume: &Volume, sources: &Sources) -> Result<Content, Obstacle> {
    let files = if let Some(map) = &volume.config_map {
        let values = sources.config_map(&map.name, map.optional)?;
        let missing = |key: &str| refers_to(key);
        chosen(
            values,
            map.items.as_deref(),
            map.optional,
            map.default_mode,
            missing,
        )?
    } else if let Some(secret) = &volume.secret {
        let name = secret.secret_name.as_deref().unwrap_or_default();
        let values = sources.secret(name, secret.optional)?;
        chosen(
            values,
            secret.items.as_deref(),
            secret.optional,
            secret.default_mode,
            refers_to,
        )?
    } else if let Some(downward) = &volume.downward_api {
        told(downward.items.as_deref(), downward.default_mode, sources)?
    } else if let Some(projected) = &volume.projected {
        let mut all = Files::new();
        for source in projected.sources.iter().flatten() {
            all.extend(part(source, projected.default_mode, sources)?);
        }
        all
    } else {
        return elsewhere(volume, sources);
    };
    Ok(Content::Files(files))
}

fn elsewhere(volume: &Volume, sources: &Sources) -> Result<Content, Obstacle> {
    if volume.empty_dir.is_some() {
        return Ok(Content::Empty);
    }
    if let Some(path) = &volume.host_path {
        let wanted = Wanted::of(path.type_.as_deref().unwrap_or_default());
        return Ok(Content::Machine(path.path.clone().into(), wanted));
    }
    if let Some(claim) = claim_name(&sources.pod, volume) {
        return claimed(&claim, sources);
    }
    let message = format!(
        "volume \"{}\" is of a kind that this node does not have",
        volume.name
    );
    Err(failed(message))
}

fn claimed(claim: &str, sources: &Sources) -> Result<Content, Obstacle> {
    match sources.claims.get(claim) {
        Some(Ok(folder)) => Ok(Content::Machine(folder.clone(), Wanted::FolderOrNew)),
        Some(Err(why)) => Err(failed(why.clone())),
        None => Err(failed(format!(
            "persistentvolumeclaim \"{claim}\" not found"
        ))),
    }
}

fn part(
    source: &VolumeProjection,
    mode: Option<i32>,
    sources: &Sources,
) -> Result<Files, Obstacle> {
    if let Some(map) = &source.config_map {
        let values = sources.config_map(&map.name, map.optional)?;
        return chosen(values, map.items.as_deref(), map.optional, mode, refers_to);
    }
    if let Some(secret) = &source.secret {
        let values = sources.secret(&secret.name, secret.optional)?;
        return chosen(
            values,
            secret.items.as_deref(),
            secret.optional,
            mode,
            refers_to,
        );
    }
    if let Some(downward) = &source.downward_api {
        return told(downward.items.as_deref(), mode, sources);
    }
    if let Some(token) = &source.service_account_token {
        let audience = token.audience.as_deref().unwrap_or_default();
        let none = || Err("there is no token for the service account yet".to_owned());
        let found = sources.tokens.get(audience).cloned();
        let bytes = found.unwrap_or_else(none).map_err(failed)?;
        let text = Text {
            bytes: bytes.into_bytes(),
            mode: mode.unwrap_or(READABLE).unsigned_abs(),
        };
        return Ok([(inside(&token.path)?, text)].into());
    }
    Err(failed(
        "a projected source is of a kind that this node does not have".into(),
    ))
}

/// All values, or those that are asked for under the paths that are asked for.
fn chosen(
    mut values: BTreeMap<String, Vec<u8>>,
    items: Option<&[KeyToPath]>,
    optional: Option<bool>,
    mode: Option<i32>,
    missing: impl Fn(&str) -> Obstacle,
) -> Result<Files, Obstacle> {
    let mode = mode.unwrap_or(READABLE);
    let text = |bytes, mode: i32| Text {
        bytes,
        mode: mode.unsigned_abs(),
    };
    let Some(items) = items.filter(|items| !items.is_empty()) else {
        let all = values.into_iter();
        return Ok(all
            .map(|(key, bytes)| (key.into(), text(bytes, mode)))
            .collect());
    };
    let mut files = Files::new();
    for item in items {
        match values.remove(&item.key) {
            Some(bytes) => {
                files.insert(inside(&item.path)?, text(bytes, item.mode.unwrap_or(mode)));
            }
            None if optional == Some(true) => {}
            None => return Err(missing(&item.key)),
        }
    }
    Ok(files)
}

/// What the pod is told of itself.
fn told(
    items: Option<&[DownwardAPIVolumeFile]>,
    mode: Option<i32>,
    sources: &Sources,
) -> Result<Files, Obstacle> {
    let mut files = Files::new();
    for item in items.unwrap_or_default() {
        let of_pod = item.field_ref.as_ref();
        let value = of_pod.and_then(|from| field::of_pod(&sources.pod, &from.field_path));
        let of_container = item.resource_field_ref.as_ref().and_then(|from| {
            let containers = &sources.pod.spec.as_ref()?.containers;
            let named = |name: &str| containers.iter().find(|one| one.name == name);
            field::of_resources(named(from.container_name.as_deref()?)?, from)
        });
        let value = value.or(of_container);
        let value =
            value.ok_or_else(|| failed(format!("{}: the pod has no such field", item.path)))?;
        let text = Text {
            bytes: value.into_bytes(),
            mode: item.mode.or(mode).unwrap_or(READABLE).unsigned_abs(),
        };
        files.insert(inside(&item.path)?, text);
    }
    Ok(files)
}

/// A path that stays in its volume.
fn inside(path: &str) -> Result<PathBuf, Obstacle> {
    let stays = |part: Component<'_>| matches!(part, Component::Normal(_));
    if Path::new(path).components().all(stays) && !path.is_empty() {
        return Ok(path.into());
    }
    Err(failed(format!("{path} does not lie in the volume")))
}

fn refers_to(key: &str) -> Obstacle {
    failed(format!("references non-existent config key: {key}"))
}

fn failed(message: String) -> Obstacle {
    Obstacle {
        reason: "FailedMount",
        message,
    }
}
