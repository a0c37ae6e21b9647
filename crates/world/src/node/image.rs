//! The table of images: which program of this machine runs for which image.
//!
//! There are no container images here, only a table: users specify which command runs for which
//! image name. A pod with an unknown image waits, and its status shows how to add it.

mod table;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use k8s_openapi::api::core::v1::Container;
use serde::Deserialize;

pub use self::table::ImageTable;
use super::{environment::expand, launch::Mount, pod::WaitingReason};

/// The command that runs for an image.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// The name, with or without registry and tag; the more specific, the fewer references it
    /// matches.
    pub name: String,
    /// The program, replaced by the container's `command`.
    #[serde(default)]
    pub command: Vec<String>,
    /// The arguments, replaced by the container's `args`.
    #[serde(default)]
    pub args: Vec<String>,
    /// Variables that the container may override.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The user, unless the pod specifies one.
    pub user: Option<u32>,
    /// The working directory.
    pub folder: Option<PathBuf>,
}

/// The image table of this node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Images {
    #[serde(default, rename = "image")]
    images: Vec<Image>,
}

impl Images {
    /// The images of every node: the machine's own shell and tools under common names, and the
    /// program `neap` under its own.
    pub fn builtin(neap: &Path) -> Self {
        let of_machine = ["busybox", "alpine", "debian", "ubuntu"].map(|name| Image {
            name: name.to_owned(),
            // As in these images, the container's command replaces the shell.
            args: vec!["/bin/sh".to_owned()],
            ..Image::default()
        });
        let own = Image {
            name: "neaptide/neap".to_owned(),
            command: vec![neap.display().to_string()],
            // For commands that replace the program and call it: a container has another PATH.
            env: [("NEAP".to_owned(), neap.display().to_string())].into(),
            ..Image::default()
        };
        Self {
            images: of_machine.into_iter().chain([own]).collect(),
        }
    }

    /// These images, preceded by those of a table in TOML.
    pub fn preceded_by(mut self, text: &str) -> Result<Self, toml::de::Error> {
        let mut table: Self = toml::from_str(text)?;
        table.images.append(&mut self.images);
        Ok(table)
    }

    /// The names of all images.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.images.iter().map(|image| image.name.as_str())
    }

    /// The image that `reference` names: the first exact match, or else the first without tag, or
    /// without registry too.
    pub fn find(&self, reference: &str) -> Option<&Image> {
        let named = |name: &str| self.images.iter().find(|image| image.name == name);
        let (name, tagged) = (untagged(reference), undigested(reference));
        let registries = [
            "docker.io/library/",
            "docker.io/",
            "index.docker.io/library/",
        ];
        let short = registries
            .iter()
            .find_map(|registry| name.strip_prefix(registry));
        named(reference)
            .or_else(|| named(tagged))
            .or_else(|| named(name))
            .or_else(|| named(short?))
    }

    /// The command line of a container, with `$(NAME)` replaced by `values`.
    pub(super) fn command(
        &self,
        container: &Container,
        values: &BTreeMap<String, String>,
    ) -> Result<Vec<String>, WaitingReason> {
        let reference = container.image.as_deref().unwrap_or_default();
        let image = self.get(reference)?;
        let given = |list: &Option<Vec<String>>| list.clone().filter(|list| !list.is_empty());
        let (program, arguments) = match (given(&container.command), given(&container.args)) {
            (Some(command), args) => (command, args.unwrap_or_default()),
            (None, Some(args)) => (image.command.clone(), args),
            (None, None) => (image.command.clone(), image.args.clone()),
        };
        let words = program.iter().chain(&arguments);
        let command: Vec<_> = words.map(|word| expand(word, values)).collect();
        if command.is_empty() {
            return Err(WaitingReason {
                reason: "RunContainerError",
                message: format!(
                    "image \"{reference}\" has no command, and the container names none"
                ),
            });
        }
        Ok(command)
    }

    /// The image, or an error that shows how to add it.
    pub(super) fn get(&self, reference: &str) -> Result<&Image, WaitingReason> {
        self.find(reference).ok_or_else(|| WaitingReason {
            reason: "ErrImageNeverPull",
            message: format!(
                "image \"{reference}\" is not in this node's table: add [[image]] with name = \"{}\" and command = [...] to the file given by --images",
                untagged(reference)
            ),
        })
    }
}

impl Image {
    /// Refuses an image whose folder or program does not exist, which would look like a fault of the
    /// program. What a volume of the container provides (`mounts`) may appear later.
    pub(super) fn must_exist(
        &self,
        reference: &str,
        command: &[String],
        mounts: &[Mount],
    ) -> Result<(), WaitingReason> {
        let missing = |path: &Path| {
            let mounted = mounts.iter().any(|mount| path.starts_with(&mount.to));
            path.is_absolute() && !mounted && !path.exists()
        };
        let refused = |what: &str, path: &Path| WaitingReason {
            reason: "RunContainerError",
            message: format!(
                "the {what} {} of image \"{reference}\" does not exist on this machine: create it, or correct the image in the file given by --images",
                path.display()
            ),
        };
        if let Some(folder) = self.folder.as_deref().filter(|folder| missing(folder)) {
            return Err(refused("folder", folder));
        }
        let program = self
            .command
            .first()
            .filter(|own| command.first() == Some(own));
        match program.map(Path::new).filter(|program| missing(program)) {
            Some(program) => Err(refused("program", program)),
            None => Ok(()),
        }
    }
}

fn undigested(reference: &str) -> &str {
    reference
        .split_once('@')
        .map_or(reference, |(name, _)| name)
}

fn untagged(reference: &str) -> &str {
    let name = undigested(reference);
    // A colon before the last slash belongs to the registry's port.
    match name.rsplit_once(':') {
        Some((before, tag)) if !tag.contains('/') => before,
        _ => name,
    }
}
