//! Writes the files of a pod.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, Permissions},
    io,
    os::unix::fs::PermissionsExt,
    path::{Component, Path},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::api::core::v1::Pod;
use neap_kit::{event::EventDraft, key::Key};

use super::reconcile::NodeReconciler;
use crate::node::{
    container_launch::host_name,
    hosts_file::hosts_file,
    pod::WaitingReason,
    sources::PodSources,
    volume::{
        VolumeContent, VolumePath, content, create_private_folder, ensure_host_path, write,
        write_text,
    },
};

/// The objects and volumes of a pod.
pub(super) struct PreparedPod {
    pub(super) sources: Arc<PodSources>,
    /// The paths of its volumes, by name; or why they are not mounted.
    pub(super) volumes: Result<Arc<BTreeMap<String, VolumePath>>, WaitingReason>,
    /// The time until its files have to be rewritten.
    pub(super) renew: Option<Duration>,
}

impl NodeReconciler {
    /// Reads the objects that `pod` refers to and writes them to its folder.
    pub(super) async fn prepare(&self, key: &Key, pod: &Pod) -> PreparedPod {
        let (sources, renew) = self.source_reader.sources(pod).await;
        let sources = Arc::new(sources);
        let (all, folder) = (self.services.list(""), self.folder(pod));
        let text = hosts_file(pod, all.iter().map(|service| &**service), |service| {
            self.slices.get(&service.to_string())
        });
        let given = sources.clone();
        let claims = self.options.folder.join("volumes");
        let allowed = self.options.restricted.then_some(claims);
        let written = blocking(move || Ok(write_files(&given, &folder, &text, allowed.as_deref())));
        let volumes = written
            .await
            .unwrap_or_else(|error| Err(failed("pod", &error)));
        let found = volumes.as_ref().map(drop).map_err(Clone::clone);
        // Recorded once, not in every reconcile.
        if let Some(wait_reason) = self.pod_states.record_volumes(key, found) {
            let event = EventDraft::warning(wait_reason.reason, wait_reason.message);
            self.recorder.record(pod, &event).await;
        }
        PreparedPod {
            sources,
            volumes: volumes.map(Arc::new),
            renew,
        }
    }
}

/// Writes the hosts file and all volumes of a pod below `folder`. Paths of the machine are allowed
/// below `allowed`, if that is given, and otherwise everywhere.
fn write_files(
    sources: &PodSources,
    folder: &Path,
    hosts: &str,
    allowed: Option<&Path>,
) -> Result<BTreeMap<String, VolumePath>, WaitingReason> {
    let of_pod = |error: io::Error| failed("the pod's own files", &error);
    // Other users of this machine must not read secrets.
    create_private_folder(folder).map_err(of_pod)?;
    write_text(&folder.join("hosts"), hosts).map_err(of_pod)?;
    let name = format!("{}\n", host_name(&sources.pod));
    write_text(&folder.join("hostname"), &name).map_err(of_pod)?;
    let mut volumes = BTreeMap::new();
    let spec = sources.pod.spec.iter();
    for volume in spec.flat_map(|spec| spec.volumes.iter().flatten()) {
        let own = folder.join("volumes").join(&volume.name);
        let what = format!("volume \"{}\"", volume.name);
        let content = content(volume, sources).map_err(|wait_reason| WaitingReason {
            reason: "FailedMount",
            message: format!("{what}: {}", wait_reason.message),
        })?;
        let path = match content {
            VolumeContent::Files(files) => write(&own, &files).map(|_| VolumePath::written(own)),
            VolumeContent::Empty => create_shared_folder(&own).map(|()| VolumePath::free(own)),
            VolumeContent::Machine(source, _) if !is_allowed(&source, allowed) => {
                return Err(WaitingReason {
                    reason: "FailedMount",
                    message: format!(
                        "{what}: this node refuses paths of the machine (--restricted): {}",
                        source.display()
                    ),
                });
            }
            VolumeContent::Machine(source, wanted) => {
                ensure_host_path(&source, wanted).map(|()| VolumePath::free(source))
            }
        };
        let path = path.map_err(|error| failed(&what, &error))?;
        volumes.insert(volume.name.clone(), path);
    }
    Ok(volumes)
}

/// Whether a path of the machine may be mounted.
fn is_allowed(path: &Path, allowed: Option<&Path>) -> bool {
    let plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    allowed.is_none_or(|folder| {
        let below = path.starts_with(folder) && path.components().all(plain);
        below && resolves_below(path, folder)
    })
}

/// Whether the part of `path` that exists stays below `folder`: containers create symbolic links in the
/// folders of their claims.
fn resolves_below(path: &Path, folder: &Path) -> bool {
    let existing = path
        .ancestors()
        .find(|path| path.symlink_metadata().is_ok());
    let (existing, folder) = (existing.map(Path::canonicalize), folder.canonicalize());
    match (existing, folder) {
        (Some(Ok(existing)), Ok(folder)) => existing.starts_with(folder),
        // Without the folder there are no links in it.
        (_, Err(error)) => error.kind() == io::ErrorKind::NotFound,
        (_, Ok(_)) => false,
    }
}

/// A folder that any user of a container may write to. Other users of the machine cannot reach it
/// through its parents. If this is interrupted, the folder either does not exist or is open to all;
/// a mode that a container sets later is kept.
fn create_shared_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    // No volume has such a name.
    let mut name = OsString::from(".");
    name.push(folder.file_name().unwrap_or_default());
    let made = folder.with_file_name(name);
    fs::create_dir_all(&made)?;
    fs::set_permissions(&made, Permissions::from_mode(0o777))?;
    fs::rename(made, folder)
}

fn failed(what: &str, error: &io::Error) -> WaitingReason {
    WaitingReason {
        reason: "FailedMount",
        message: format!("{what}: {}", io_message(error)),
    }
}

/// The message of an I/O error, with what to do about it.
pub(super) fn io_message(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            format!(
                "the disk of this node is full ({error}): free some space, it is retried automatically"
            )
        }
        _ => error.to_string(),
    }
}

/// Runs blocking work on a thread of its own.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_reported_as_such() {
        let full = io::Error::from_raw_os_error(nix::errno::Errno::ENOSPC as i32);
        let wait_reason = failed("volume \"v\"", &full);
        assert_eq!(wait_reason.reason, "FailedMount");
        let expected = "volume \"v\": the disk of this node is full";
        assert!(
            wait_reason.message.starts_with(expected),
            "{}",
            wait_reason.message
        );
    }

    #[test]
    fn a_restricted_node_mounts_only_folders_of_claims() {
        let claims = Path::new("/data/node/volumes");
        for (path, allowed) in [
            ("/data/node/volumes/default_a_1", true),
            ("/data/node/volumes/../../identity", false),
            ("/data/node/volumes2", false),
            ("/etc", false),
        ] {
            assert_eq!(is_allowed(Path::new(path), Some(claims)), allowed, "{path}");
            assert!(is_allowed(Path::new(path), None));
        }
    }

    #[test]
    fn a_restricted_node_follows_no_symbolic_link_out_of_a_claim() {
        let node = tempfile::tempdir().unwrap();
        let claims = node.path().join("volumes");
        let claim = claims.join("default_a_1");
        fs::create_dir_all(claim.join("inside")).unwrap();
        std::os::unix::fs::symlink("/etc", claim.join("link")).unwrap();
        std::os::unix::fs::symlink("nowhere", claim.join("dangling")).unwrap();
        std::os::unix::fs::symlink("inside", claim.join("within")).unwrap();
        for (path, allowed) in [
            ("", true),
            ("inside", true),
            ("within", true),
            ("inside/new/folder", true),
            ("link", false),
            ("link/new", false),
            ("dangling", false),
        ] {
            let path = claim.join(path);
            assert_eq!(is_allowed(&path, Some(&claims)), allowed, "{path:?}");
        }
    }

    #[test]
    fn an_empty_folder_is_open_to_all_even_after_a_crash_and_a_containers_mode_is_kept() {
        let parent = tempfile::tempdir().unwrap();
        let volumes = parent.path().join("volumes");
        let folder = volumes.join("data");
        // The crash came between creating the folder and setting its mode.
        fs::create_dir_all(volumes.join(".data")).unwrap();
        fs::set_permissions(volumes.join(".data"), Permissions::from_mode(0o700)).unwrap();
        let mode = || fs::metadata(&folder).unwrap().permissions().mode() & 0o7777;
        create_shared_folder(&folder).unwrap();
        assert_eq!(mode(), 0o777);
        assert_eq!(fs::read_dir(&volumes).unwrap().count(), 1);
        fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
        create_shared_folder(&folder).unwrap();
        assert_eq!(mode(), 0o700);
    }
}
