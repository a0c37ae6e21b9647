//! The content of volumes. Pure.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use k8s_openapi::api::core::v1::{DownwardAPIVolumeFile, KeyToPath, Volume, VolumeProjection};

use super::HostPathType;
use crate::{
    node::{downward_api, pod::WaitingReason, sources::PodSources},
    workload::claim_name,
};

/// The content of a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VolumeContent {
    /// Files that the node writes.
    Files(VolumeFiles),
    /// A folder or file of the machine.
    Machine(PathBuf, HostPathType),
    /// An empty folder that is removed with the pod.
    Empty,
}

/// Files by their paths in the volume.
pub type VolumeFiles = BTreeMap<PathBuf, VolumeFile>;

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeFile {
    /// Its content.
    pub bytes: Vec<u8>,
    /// Its mode.
    pub mode: u32,
}

const DEFAULT_MODE: i32 = 0o644;

/// The content of `volume`, or why it is not available.
pub fn content(volume: &Volume, sources: &PodSources) -> Result<VolumeContent, WaitingReason> {
    let files = if let Some(map) = &volume.config_map {
        let values = sources.config_map(&map.name, map.optional)?;
        let missing = |key: &str| refers_to(key);
        selected_files(
            values,
            map.items.as_deref(),
            map.optional,
            map.default_mode,
            missing,
        )?
    } else if let Some(secret) = &volume.secret {
        let name = secret.secret_name.as_deref().unwrap_or_default();
        let values = sources.secret(name, secret.optional)?;
        selected_files(
            values,
            secret.items.as_deref(),
            secret.optional,
            secret.default_mode,
            refers_to,
        )?
    } else if let Some(downward) = &volume.downward_api {
        downward_files(downward.items.as_deref(), downward.default_mode, sources)?
    } else if let Some(projected) = &volume.projected {
        let mut all = VolumeFiles::new();
        for source in projected.sources.iter().flatten() {
            all.extend(part(source, projected.default_mode, sources)?);
        }
        all
    } else {
        return other_content(volume, sources);
    };
    Ok(VolumeContent::Files(files))
}

fn other_content(volume: &Volume, sources: &PodSources) -> Result<VolumeContent, WaitingReason> {
    if volume.empty_dir.is_some() {
        return Ok(VolumeContent::Empty);
    }
    if let Some(path) = &volume.host_path {
        let wanted = HostPathType::of(path.type_.as_deref().unwrap_or_default());
        return Ok(VolumeContent::Machine(path.path.clone().into(), wanted));
    }
    if let Some(claim) = claim_name(&sources.pod, volume) {
        return claim_content(&claim, sources);
    }
    let message = format!(
        "volume \"{}\" has a type that this node does not support",
        volume.name
    );
    Err(failed(message))
}

fn claim_content(claim: &str, sources: &PodSources) -> Result<VolumeContent, WaitingReason> {
    match sources.claims.get(claim) {
        Some(Ok(folder)) => Ok(VolumeContent::Machine(
            folder.clone(),
            HostPathType::DirectoryOrCreate,
        )),
        Some(Err(why)) => Err(failed(why.clone())),
        None => Err(failed(format!(
            "persistentvolumeclaim \"{claim}\" not found"
        ))),
    }
}

fn part(
    source: &VolumeProjection,
    mode: Option<i32>,
    sources: &PodSources,
) -> Result<VolumeFiles, WaitingReason> {
    if let Some(map) = &source.config_map {
        let values = sources.config_map(&map.name, map.optional)?;
        return selected_files(values, map.items.as_deref(), map.optional, mode, refers_to);
    }
    if let Some(secret) = &source.secret {
        let values = sources.secret(&secret.name, secret.optional)?;
        return selected_files(
            values,
            secret.items.as_deref(),
            secret.optional,
            mode,
            refers_to,
        );
    }
    if let Some(downward) = &source.downward_api {
        return downward_files(downward.items.as_deref(), mode, sources);
    }
    if let Some(token) = &source.service_account_token {
        let audience = token.audience.as_deref().unwrap_or_default();
        let none = || Err("there is no token for the service account yet".to_owned());
        let found = sources.tokens.get(audience).cloned();
        let bytes = found.unwrap_or_else(none).map_err(failed)?;
        let text = VolumeFile {
            bytes: bytes.into_bytes(),
            mode: mode.unwrap_or(DEFAULT_MODE).unsigned_abs(),
        };
        return Ok([(inside(&token.path)?, text)].into());
    }
    Err(failed(
        "a projected source has a type that this node does not support".into(),
    ))
}

/// All values, or those of `items` under their paths.
fn selected_files(
    mut values: BTreeMap<String, Vec<u8>>,
    items: Option<&[KeyToPath]>,
    optional: Option<bool>,
    mode: Option<i32>,
    missing: impl Fn(&str) -> WaitingReason,
) -> Result<VolumeFiles, WaitingReason> {
    let mode = mode.unwrap_or(DEFAULT_MODE);
    let text = |bytes, mode: i32| VolumeFile {
        bytes,
        mode: mode.unsigned_abs(),
    };
    let Some(items) = items.filter(|items| !items.is_empty()) else {
        let all = values.into_iter();
        return Ok(all
            .map(|(key, bytes)| (key.into(), text(bytes, mode)))
            .collect());
    };
    let mut files = VolumeFiles::new();
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

/// The files of the downward API.
fn downward_files(
    items: Option<&[DownwardAPIVolumeFile]>,
    mode: Option<i32>,
    sources: &PodSources,
) -> Result<VolumeFiles, WaitingReason> {
    let mut files = VolumeFiles::new();
    for item in items.unwrap_or_default() {
        let pod_field = item.field_ref.as_ref();
        let value =
            pod_field.and_then(|from| downward_api::pod_field(&sources.pod, &from.field_path));
        let of_container = item.resource_field_ref.as_ref().and_then(|from| {
            let containers = &sources.pod.spec.as_ref()?.containers;
            let named = |name: &str| containers.iter().find(|one| one.name == name);
            downward_api::resource_field(named(from.container_name.as_deref()?)?, from)
        });
        let value = value.or(of_container);
        let value =
            value.ok_or_else(|| failed(format!("{}: the pod has no such field", item.path)))?;
        let text = VolumeFile {
            bytes: value.into_bytes(),
            mode: item.mode.or(mode).unwrap_or(DEFAULT_MODE).unsigned_abs(),
        };
        files.insert(inside(&item.path)?, text);
    }
    Ok(files)
}

/// Checks that a path stays inside its volume.
fn inside(path: &str) -> Result<PathBuf, WaitingReason> {
    let stays = |part: Component<'_>| matches!(part, Component::Normal(_));
    if Path::new(path).components().all(stays) && !path.is_empty() {
        return Ok(path.into());
    }
    Err(failed(format!("{path} is outside of the volume")))
}

fn refers_to(key: &str) -> WaitingReason {
    failed(format!("references non-existent config key: {key}"))
}

fn failed(message: String) -> WaitingReason {
    WaitingReason {
        reason: "FailedMount",
        message,
    }
}
