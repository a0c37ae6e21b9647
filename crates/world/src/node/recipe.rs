//! How a container is to be started. Pure.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use k8s_openapi::api::core::v1::{Container, Pod, VolumeMount};
use kube::ResourceExt;

use super::{
    environment::{environment, expand},
    image::Images,
    launch::{Launch, Mount, Rooms},
    pod::Obstacle,
    source::Sources,
};

/// What every container finds on its path.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What the node knows beside the pod.
#[derive(Debug)]
pub(super) struct Kitchen<'a> {
    pub(super) images: &'a Images,
    /// Whether processes may have rooms of their own.
    pub(super) rooms: bool,
    /// Variables for every container.
    pub(super) given: &'a BTreeMap<String, String>,
    /// Where the pod's volumes are, by name; and its own files.
    pub(super) volumes: &'a BTreeMap<String, PathBuf>,
    pub(super) hosts: &'a Path,
    /// The folder of this container.
    pub(super) folder: &'a Path,
}

/// What to launch for `container`.
pub(super) fn recipe(
    container: &Container,
    sources: &Sources,
    kitchen: &Kitchen<'_>,
) -> Result<Launch, Obstacle> {
    let image = kitchen
        .images
        .get(container.image.as_deref().unwrap_or_default())?;
    let pod = &sources.pod;
    let mut given = kitchen.given.clone();
    given.extend(image.env.clone());
    given
        .entry("PATH".to_owned())
        .or_insert_with(|| PATH.to_owned());
    given.insert("HOSTNAME".to_owned(), host_name(pod));
    given.extend(address(pod).map(|address| ("POD_IP".to_owned(), address)));
    let environment = environment(container, &given, sources)?;
    let command = kitchen.images.command(container, &environment)?;
    let folder = container.working_dir.clone().map(PathBuf::from);
    let rooms = kitchen
        .rooms
        .then(|| rooms(container, image.user, &environment, sources, kitchen));
    Ok(Launch {
        command,
        folder: folder.or_else(|| image.folder.clone()),
        environment,
        parent: std::process::id(),
        rooms: rooms.transpose()?,
        joins: None,
        terminal: false,
    })
}

fn rooms(
    container: &Container,
    usual_user: Option<u32>,
    environment: &BTreeMap<String, String>,
    sources: &Sources,
    kitchen: &Kitchen<'_>,
) -> Result<Rooms, Obstacle> {
    let pod = &sources.pod;
    let mut mounts = vec![Mount {
        from: kitchen.hosts.to_owned(),
        to: "/etc/hosts".into(),
        read_only: false,
    }];
    for mount in container.volume_mounts.iter().flatten() {
        mounts.push(placed(mount, environment, kitchen)?);
    }
    let security = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.security_context.as_ref());
    let own = container.security_context.as_ref();
    let id =
        |own: Option<i64>, pods: Option<i64>| own.or(pods).and_then(|id| u32::try_from(id).ok());
    let user = id(
        own.and_then(|own| own.run_as_user),
        security.and_then(|all| all.run_as_user),
    );
    let group = id(
        own.and_then(|own| own.run_as_group),
        security.and_then(|all| all.run_as_group),
    );
    let user = user.or(usual_user).unwrap_or(0);
    Ok(Rooms {
        root: kitchen.folder.join("root"),
        mounts,
        user,
        group: group.unwrap_or(user),
        host_name: host_name(pod),
    })
}

/// Where a volume is to be in a container.
fn placed(
    mount: &VolumeMount,
    environment: &BTreeMap<String, String>,
    kitchen: &Kitchen<'_>,
) -> Result<Mount, Obstacle> {
    let from = kitchen.volumes.get(&mount.name).ok_or_else(|| Obstacle {
        reason: "CreateContainerConfigError",
        message: format!("the pod has no volume \"{}\"", mount.name),
    })?;
    let part = match (&mount.sub_path, &mount.sub_path_expr) {
        (Some(part), _) => part.clone(),
        (None, Some(part)) => expand(part, environment),
        (None, None) => String::new(),
    };
    Ok(Mount {
        from: if part.is_empty() {
            from.clone()
        } else {
            from.join(part)
        },
        to: mount.mount_path.clone().into(),
        read_only: mount.read_only == Some(true),
    })
}

/// What the pod calls itself.
pub(super) fn host_name(pod: &Pod) -> String {
    let asked = pod.spec.as_ref().and_then(|spec| spec.hostname.clone());
    let mut name = asked.unwrap_or_else(|| pod.name_any());
    name.truncate(63);
    name
}

fn address(pod: &Pod) -> Option<String> {
    pod.status.as_ref().and_then(|status| status.pod_ip.clone())
}
