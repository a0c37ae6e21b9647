//! Puts the files of a pod in place.

use std::{
    collections::BTreeMap,
    fs::{self, Permissions},
    io,
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::Arc,
    time::Duration,
};

use k8s_openapi::api::core::v1::Pod;
use neap_kit::{event::Note, key::Key};

use super::node::Node;
use crate::node::{
    hosts::hosts,
    pod::Obstacle,
    recipe::host_name,
    source::Sources,
    volume::{Content, Place, content, folder_of_ones_own, provide, put_text, write},
};

/// What a pod is made of.
pub(super) struct Parts {
    pub(super) sources: Arc<Sources>,
    /// Where its volumes are, by name; or why they are not.
    pub(super) places: Result<Arc<BTreeMap<String, Place>>, Obstacle>,
    /// When its files have to be written anew.
    pub(super) renew: Option<Duration>,
}

impl Node {
    /// Reads what `pod` is made of and writes it to its folder.
    pub(super) async fn assemble(&self, key: &Key, pod: &Pod) -> Parts {
        let (sources, renew) = self.gatherer.sources(pod).await;
        let sources = Arc::new(sources);
        let (all, folder) = (self.services.list(""), self.folder(pod));
        let text = hosts(pod, all.iter().map(|service| &**service), |service| {
            self.slices.get(&service.to_string())
        });
        let given = sources.clone();
        let put = blocking(move || Ok(put(&given, &folder, &text)));
        let places = put.await.unwrap_or_else(|error| Err(failed("pod", &error)));
        let found = places.as_ref().map(drop).map_err(Clone::clone);
        // Told once, not at every look.
        if let Some(obstacle) = self.locals.note_volumes(key, found) {
            let note = Note::warning(obstacle.reason, obstacle.message);
            self.recorder.tell(pod, &note).await;
        }
        Parts {
            sources,
            places: places.map(Arc::new),
            renew,
        }
    }
}

/// Writes the hosts file and all volumes of a pod below `folder`.
fn put(sources: &Sources, folder: &Path, hosts: &str) -> Result<BTreeMap<String, Place>, Obstacle> {
    let of_pod = |error: io::Error| failed("the pod's own files", &error);
    // Others on this machine are not to read secrets.
    folder_of_ones_own(folder).map_err(of_pod)?;
    put_text(&folder.join("hosts"), hosts).map_err(of_pod)?;
    let name = format!("{}\n", host_name(&sources.pod));
    put_text(&folder.join("hostname"), &name).map_err(of_pod)?;
    let mut places = BTreeMap::new();
    let spec = sources.pod.spec.iter();
    for volume in spec.flat_map(|spec| spec.volumes.iter().flatten()) {
        let own = folder.join("volumes").join(&volume.name);
        let what = format!("volume \"{}\"", volume.name);
        let content = content(volume, sources).map_err(|obstacle| Obstacle {
            reason: "FailedMount",
            message: format!("{what}: {}", obstacle.message),
        })?;
        let place = match content {
            Content::Files(files) => write(&own, &files).map(|_| Place::written(own)),
            Content::Empty => open_to_all(&own).map(|()| Place::free(own)),
            Content::Machine(path, wanted) => provide(&path, wanted).map(|()| Place::free(path)),
        };
        let place = place.map_err(|error| failed(&what, &error))?;
        places.insert(volume.name.clone(), place);
    }
    Ok(places)
}

/// A folder for whoever a container's processes become. Others do not get as far as that.
fn open_to_all(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    fs::set_permissions(folder, Permissions::from_mode(0o777))
}

fn failed(what: &str, error: &io::Error) -> Obstacle {
    Obstacle {
        reason: "FailedMount",
        message: format!("{what}: {}", words(error)),
    }
}

/// An error of the machine as somebody reads it who has to do something about it.
pub(super) fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            format!(
                "the disk of this node is full ({error}): make room, it is tried again by itself"
            )
        }
        _ => error.to_string(),
    }
}

/// Does what may take its time where nobody else waits for it.
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
    fn a_full_disk_is_called_one() {
        let full = io::Error::from_raw_os_error(nix::errno::Errno::ENOSPC as i32);
        let obstacle = failed("volume \"v\"", &full);
        assert_eq!(obstacle.reason, "FailedMount");
        let words = "volume \"v\": the disk of this node is full";
        assert!(obstacle.message.starts_with(words), "{}", obstacle.message);
    }
}
