//! Which program of this machine an image stands for.
//!
//! There are no images here, only a table: users write which command is to run for which name. A
//! name that is not in it leaves the pod waiting, and says how to add it.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use k8s_openapi::api::core::v1::Container;
use serde::Deserialize;

use super::{environment::expand, pod::Obstacle};

/// What runs in place of an image.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// The name, with or without registry and tag; the more is said, the fewer it is for.
    pub name: String,
    /// What is run, unless the container says otherwise: its `command` takes the place of this.
    #[serde(default)]
    pub command: Vec<String>,
    /// What it is run with, unless the container says otherwise: its `args` take the place of this.
    #[serde(default)]
    pub args: Vec<String>,
    /// Variables that the container may override.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Who it runs as, unless the pod says otherwise.
    pub user: Option<u32>,
    /// Where it starts.
    pub folder: Option<PathBuf>,
}

/// All images that this node has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Images {
    #[serde(default, rename = "image")]
    images: Vec<Image>,
}

/// A table that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("the image table {path} cannot be read")]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file is no table of images.
    #[error("the image table {path} is not as it should be")]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: Box<toml::de::Error>,
    },
}

impl Images {
    /// The images that every node has: the machine's own shell and tools under the names that
    /// people try first, and the program `neap` under its own.
    pub fn usual(neap: &Path) -> Self {
        let of_machine = ["busybox", "alpine", "debian", "ubuntu"].map(|name| Image {
            name: name.to_owned(),
            // As in these images: what a container is given to run takes the place of the shell.
            args: vec!["/bin/sh".to_owned()],
            ..Image::default()
        });
        let own = Image {
            name: "neaptide/neap".to_owned(),
            command: vec![neap.display().to_string()],
            ..Image::default()
        };
        Self {
            images: of_machine.into_iter().chain([own]).collect(),
        }
    }

    /// These, and before them those of a file.
    pub fn with_file(mut self, path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        let mut table: Self = toml::from_str(&text).map_err(|source| Error::Malformed {
            path: path.to_owned(),
            source: Box::new(source),
        })?;
        table.images.append(&mut self.images);
        Ok(table)
    }

    /// The names of all.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.images.iter().map(|image| image.name.as_str())
    }

    /// The image that `reference` names: the first that says exactly this, or else the first that
    /// says it without tag, or without registry too.
    pub fn find(&self, reference: &str) -> Option<&Image> {
        let named = |name: &str| self.images.iter().find(|image| image.name == name);
        let (name, tagged) = (untagged(reference), undigested(reference));
        let known = [
            "docker.io/library/",
            "docker.io/",
            "index.docker.io/library/",
        ];
        let short = known
            .iter()
            .find_map(|registry| name.strip_prefix(registry));
        named(reference)
            .or_else(|| named(tagged))
            .or_else(|| named(name))
            .or_else(|| named(short?))
    }

    /// What is to run for a container, with `values` in the place of `$(NAME)`.
    pub(super) fn command(
        &self,
        container: &Container,
        values: &BTreeMap<String, String>,
    ) -> Result<Vec<String>, Obstacle> {
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
            return Err(Obstacle {
                reason: "RunContainerError",
                message: format!(
                    "image \"{reference}\" has no command, and the container names none"
                ),
            });
        }
        Ok(command)
    }

    /// The image, or what to do about it.
    pub(super) fn get(&self, reference: &str) -> Result<&Image, Obstacle> {
        self.find(reference).ok_or_else(|| Obstacle {
            reason: "ErrImageNeverPull",
            message: format!(
                "image \"{reference}\" is not in this node's table: add [[image]] with name = \"{}\" and command = [...] to the file given by --images",
                untagged(reference)
            ),
        })
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
