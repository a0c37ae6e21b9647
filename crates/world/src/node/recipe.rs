//! How a container is to be started. It looks at files and changes none.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use k8s_openapi::api::core::v1::{Container, Pod, VolumeMount};
use kube::ResourceExt;

use super::{
    environment::{environment, expand},
    image::Images,
    launch::{Launch, Mount, Rooms},
    pod::Obstacle,
    source::Sources,
    volume::Place,
};

/// What every container finds on its path.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What the node knows beside the pod.
#[derive(Debug)]
pub(super) struct Kitchen<'a> {
    pub(super) images: &'a Images,
    /// Whether processes may have rooms of their own.
    pub(super) rooms: bool,
    /// Whether they may see their own processes alone.
    pub(super) own_proc: bool,
    /// Whether they may be root of the machine.
    pub(super) as_root: bool,
    /// Variables for every container.
    pub(super) given: &'a BTreeMap<String, String>,
    /// Where the pod's volumes are, by name; and its own files.
    pub(super) volumes: &'a BTreeMap<String, Place>,
    pub(super) hosts: &'a Path,
    pub(super) host_name: &'a Path,
    /// The folder of this container.
    pub(super) folder: &'a Path,
}

/// What to launch, and the folders that have to be there before.
#[derive(Debug)]
pub(super) struct Recipe {
    pub(super) launch: Launch,
    pub(super) folders: Vec<PathBuf>,
}

/// What to launch for `container`.
pub(super) fn recipe(
    container: &Container,
    sources: &Sources,
    kitchen: &Kitchen<'_>,
) -> Result<Recipe, Obstacle> {
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
    let (user, group) = identity(container, image.user, pod)?;
    let mut folders = Vec::new();
    let own = |from: &Path, to: &str| Mount {
        from: from.to_owned(),
        to: to.into(),
        read_only: false,
    };
    let mut mounts = vec![
        own(kitchen.hosts, "/etc/hosts"),
        own(kitchen.host_name, "/etc/hostname"),
    ];
    mounts.extend(program(&image.command));
    for mount in container.volume_mounts.iter().flatten() {
        let (mount, folder) = placed(mount, &environment, kitchen)?;
        mounts.push(mount);
        folders.extend(folder);
    }
    let as_root = kitchen.as_root && (user, group) == (0, 0);
    let rooms = kitchen.rooms.then(|| Rooms {
        root: kitchen.folder.join("root"),
        mounts,
        user,
        group,
        host_name: host_name(pod),
        own_proc: kitchen.own_proc || as_root,
        as_root,
    });
    let launch = Launch {
        command,
        folder: folder.or_else(|| image.folder.clone()),
        environment,
        parent: std::process::id(),
        rooms,
        joins: None,
        terminal: false,
        reports: false,
    };
    Ok(Recipe { launch, folders })
}

/// Who a container runs as: what it says goes before what its pod says, and that before what is
/// usual for its image.
fn identity(container: &Container, usual: Option<u32>, pod: &Pod) -> Result<(u32, u32), Obstacle> {
    let all = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.security_context.clone());
    let all = all.unwrap_or_default();
    let own = container.security_context.clone().unwrap_or_default();
    let user = number("runAsUser", own.run_as_user.or(all.run_as_user))?;
    let group = number("runAsGroup", own.run_as_group.or(all.run_as_group))?;
    let user = user.or(usual).unwrap_or(0);
    if user == 0 && own.run_as_non_root.or(all.run_as_non_root) == Some(true) {
        return Err(refused(format!(
            "container \"{}\" has runAsNonRoot and would run as root: give it a runAsUser",
            container.name
        )));
    }
    Ok((user, group.unwrap_or(user)))
}

/// The number of a user or group. The last one stands for nobody at all.
fn number(field: &str, asked: Option<i64>) -> Result<Option<u32>, Obstacle> {
    let Some(asked) = asked else {
        return Ok(None);
    };
    match u32::try_from(asked) {
        Ok(number) if number < u32::MAX => Ok(Some(number)),
        _ => Err(refused(format!(
            "{field} {asked} cannot be: it must lie between 0 and {}",
            u32::MAX - 1
        ))),
    }
}

fn refused(message: String) -> Obstacle {
    Obstacle {
        reason: "CreateContainerConfigError",
        message,
    }
}

/// The program of an image, if it lies among the machine's temporary files, of which a container sees
/// none.
fn program(command: &[String]) -> Option<Mount> {
    let program = Path::new(command.first()?);
    let is_hidden = program.starts_with("/tmp") && program.is_file();
    is_hidden.then(|| Mount {
        from: program.to_owned(),
        to: program.to_owned(),
        read_only: true,
    })
}

/// Where a volume is to be in a container, and the part of it that has to be made for that.
fn placed(
    mount: &VolumeMount,
    environment: &BTreeMap<String, String>,
    kitchen: &Kitchen<'_>,
) -> Result<(Mount, Option<PathBuf>), Obstacle> {
    let (to, read_only) = (
        mount.mount_path.clone().into(),
        mount.read_only == Some(true),
    );
    let none = || refused(format!("the pod has no volume \"{}\"", mount.name));
    let volume = kitchen.volumes.get(&mount.name).ok_or_else(none)?;
    let part = match (&mount.sub_path, &mount.sub_path_expr) {
        (Some(part), _) => part.clone(),
        (None, Some(part)) => expand(part, environment),
        (None, None) => String::new(),
    };
    let stays = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if !Path::new(&part).components().all(stays) {
        let words = format!("subPath {part} does not lie in volume \"{}\"", mount.name);
        return Err(refused(words));
    }
    let from = if part.is_empty() {
        volume.path.clone()
    } else {
        volume.path.join(&part)
    };
    let is_new = !part.is_empty() && !from.exists();
    if is_new && volume.is_written {
        return Err(refused(format!("volume \"{}\" has no {part}", mount.name)));
    }
    let folder = is_new.then(|| from.clone());
    let mount = Mount {
        from,
        to,
        read_only,
    };
    Ok((mount, folder))
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
