//! The launch description of a container. Reads files and changes none.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    io,
    path::{Component, Path, PathBuf},
};

use k8s_openapi::api::core::v1::{Container, Pod, VolumeMount};
use kube::ResourceExt;

use super::{
    environment::{environment, expand},
    image::{Image, Images},
    launch::{ContainerNamespaces, Launch, Mount},
    pod::WaitingReason,
    sources::PodSources,
    volume::{SubPath, VolumePath, leads_out, open_inside},
};

/// The default `PATH` of containers.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What the node provides for a container.
#[derive(Debug)]
pub(super) struct ContainerInputs<'a> {
    pub(super) images: &'a Images,
    /// Whether the machine allows namespaces.
    pub(super) namespaces: bool,
    /// Whether it allows `/proc` to show only a container's own processes.
    pub(super) own_proc: bool,
    /// Whether containers may be root of the machine.
    pub(super) as_root: bool,
    /// Whether containers that run as root are refused.
    pub(super) restricted: bool,
    /// Variables for every container.
    pub(super) given: &'a BTreeMap<String, String>,
    /// The paths of the pod's volumes, by name.
    pub(super) volumes: &'a BTreeMap<String, VolumePath>,
    pub(super) hosts: &'a Path,
    pub(super) host_name: &'a Path,
    /// The folder of this container.
    pub(super) folder: &'a Path,
}

/// The launch description, and the folders that must be created before.
#[derive(Debug)]
pub(super) struct ContainerLaunch {
    pub(super) launch: Launch,
    pub(super) folders: Vec<SubPath>,
}

/// The launch description of `container`.
pub(super) fn container_launch(
    container: &Container,
    sources: &PodSources,
    inputs: &ContainerInputs<'_>,
) -> Result<ContainerLaunch, WaitingReason> {
    let image = inputs
        .images
        .get(container.image.as_deref().unwrap_or_default())?;
    let pod = &sources.pod;
    let mut given = inputs.given.clone();
    given.extend(image.env.clone());
    given
        .entry("PATH".to_owned())
        .or_insert_with(|| PATH.to_owned());
    given.insert("HOSTNAME".to_owned(), host_name(pod));
    given.extend(address(pod).map(|address| ("POD_IP".to_owned(), address)));
    let environment = environment(container, &given, sources)?;
    let command = inputs.images.command(container, &environment)?;
    let folder = container.working_dir.clone().map(PathBuf::from);
    let (user, group) = identity(container, image.user, pod)?;
    if inputs.restricted && user == 0 {
        return Err(refused(format!(
            "container \"{}\" would run as root, which this node refuses (--restricted): give it a runAsUser",
            container.name
        )));
    }
    let mut folders = Vec::new();
    let own = |from: &Path, to: &str| Mount::new(from.to_owned(), to.into());
    let mut mounts = vec![
        own(inputs.hosts, "/etc/hosts"),
        own(inputs.host_name, "/etc/hostname"),
    ];
    mounts.extend(hidden_files(image));
    for mount in container.volume_mounts.iter().flatten() {
        let (mount, folder) = volume_mount(mount, &environment, inputs)?;
        mounts.push(mount);
        folders.extend(folder);
    }
    let reference = container.image.as_deref().unwrap_or_default();
    image.must_exist(reference, &command, &mounts)?;
    let as_root = inputs.as_root && (user, group) == (0, 0);
    let namespaces = inputs.namespaces.then(|| ContainerNamespaces {
        root: inputs.folder.join("root"),
        mounts,
        user,
        group,
        host_name: host_name(pod),
        own_proc: inputs.own_proc || as_root,
        as_root,
    });
    let launch = Launch {
        command,
        folder: folder.or_else(|| image.folder.clone()),
        environment,
        parent: std::process::id(),
        namespaces,
        joins: None,
        terminal: false,
        reports: false,
    };
    Ok(ContainerLaunch { launch, folders })
}

/// The user and group of a container: its own security context takes precedence over its pod's, and
/// that over the default of its image.
fn identity(
    container: &Container,
    default: Option<u32>,
    pod: &Pod,
) -> Result<(u32, u32), WaitingReason> {
    let all = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.security_context.clone());
    let all = all.unwrap_or_default();
    let own = container.security_context.clone().unwrap_or_default();
    let user = number("runAsUser", own.run_as_user.or(all.run_as_user))?;
    let group = number("runAsGroup", own.run_as_group.or(all.run_as_group))?;
    let user = user.or(default).unwrap_or(0);
    if user == 0 && own.run_as_non_root.or(all.run_as_non_root) == Some(true) {
        return Err(refused(format!(
            "container \"{}\" has runAsNonRoot and would run as root: give it a runAsUser",
            container.name
        )));
    }
    Ok((user, group.unwrap_or(user)))
}

/// The id of a user or group. The highest value is reserved and names none.
fn number(field: &str, value: Option<i64>) -> Result<Option<u32>, WaitingReason> {
    let Some(value) = value else {
        return Ok(None);
    };
    match u32::try_from(value) {
        Ok(number) if number < u32::MAX => Ok(Some(number)),
        _ => Err(refused(format!(
            "{field} {value} is invalid: it must be between 0 and {}",
            u32::MAX - 1
        ))),
    }
}

fn refused(message: String) -> WaitingReason {
    WaitingReason {
        reason: "CreateContainerConfigError",
        message,
    }
}

/// Mounts of what the image table names in `/tmp`, which a container does not see otherwise: the
/// folder of the image, which it may write to, and the files and folders of its command line.
fn hidden_files(image: &Image) -> Vec<Mount> {
    let hidden = |path: &Path| {
        let plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
        let below = path
            .strip_prefix("/tmp")
            .is_ok_and(|rest| rest != Path::new(""));
        below && path.components().all(plain) && path.exists()
    };
    let folder = image.folder.as_deref().filter(|folder| hidden(folder));
    let words = image.command.iter().chain(&image.args).map(Path::new);
    let mut named: Vec<&Path> = words.filter(|path| hidden(path)).collect();
    named.sort_unstable();
    named.dedup();
    // What is in the folder is there with it.
    named.retain(|path| folder.is_none_or(|folder| !path.starts_with(folder)));
    let read_only = named.into_iter().map(|path| Mount {
        read_only: true,
        ..Mount::new(path.to_owned(), path.to_owned())
    });
    let folder = folder.map(|folder| Mount::new(folder.to_owned(), folder.to_owned()));
    folder.into_iter().chain(read_only).collect()
}

/// The mount of a volume in a container, and the part of it that has to be created for that.
fn volume_mount(
    mount: &VolumeMount,
    environment: &BTreeMap<String, String>,
    inputs: &ContainerInputs<'_>,
) -> Result<(Mount, Option<SubPath>), WaitingReason> {
    let (to, read_only) = (
        mount.mount_path.clone().into(),
        mount.read_only == Some(true),
    );
    let none = || refused(format!("the pod has no volume \"{}\"", mount.name));
    let volume = inputs.volumes.get(&mount.name).ok_or_else(none)?;
    let part = match (&mount.sub_path, &mount.sub_path_expr) {
        (Some(part), _) => part.clone(),
        (None, Some(part)) => expand(part, environment),
        (None, None) => String::new(),
    };
    let stays = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if !Path::new(&part).components().all(stays) {
        let message = format!("subPath {part} is outside of volume \"{}\"", mount.name);
        return Err(refused(message));
    }
    let whole = Mount {
        read_only,
        ..Mount::new(volume.path.clone(), to)
    };
    if part.is_empty() {
        return Ok((whole, None));
    }
    let is_new = match open_inside(&volume.path, Path::new(&part)) {
        Ok(_) => false,
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => {
            let why = if leads_out(&error) {
                "a symbolic link leads out of it".to_owned()
            } else {
                error.to_string()
            };
            let message = format!("subPath {part} of volume \"{}\": {why}", mount.name);
            return Err(refused(message));
        }
    };
    if is_new && volume.is_written {
        return Err(refused(format!("volume \"{}\" has no {part}", mount.name)));
    }
    let folder = is_new.then(|| SubPath {
        volume: volume.path.clone(),
        part: part.clone().into(),
    });
    let mount = Mount {
        part: Some(part.into()),
        ..whole
    };
    Ok((mount, folder))
}

/// The host name of the pod.
pub(super) fn host_name(pod: &Pod) -> String {
    let hostname = pod.spec.as_ref().and_then(|spec| spec.hostname.clone());
    let mut name = hostname.unwrap_or_else(|| pod.name_any());
    name.truncate(63);
    name
}

fn address(pod: &Pod) -> Option<String> {
    pod.status.as_ref().and_then(|status| status.pod_ip.clone())
}
