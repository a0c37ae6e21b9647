//! Conflicts: fields that another manager owns with another value.

use std::fmt::{self, Write as _};

use crate::{
    patch::managed::{Entry, FieldSet, ManagerOperation},
    status::MAX_PROBLEMS,
};

/// Bytes of the paths of the conflicts with one owner, at most.
const MAX_PATH_BYTES: usize = 1 << 20;

/// A field that an apply may not change without force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The owner.
    pub manager: String,
    /// The operation by which it owns the field.
    pub operation: ManagerOperation,
    /// The version it wrote in.
    pub api_version: String,
    /// The subresource it wrote through, empty for the resource itself.
    pub subresource: String,
    /// The field, such as `.spec.replicas`.
    pub path: String,
}

impl Conflict {
    /// One conflict for each member of `fields`, as far as an answer has room for them.
    pub(super) fn over<'a>(
        owner: &'a Entry,
        fields: &FieldSet,
    ) -> impl Iterator<Item = Self> + use<'a> {
        let mut paths: Vec<String> = Vec::new();
        let mut bytes = 0;
        fields.for_each(&mut |path| {
            if paths.len() < MAX_PROBLEMS && bytes < MAX_PATH_BYTES {
                let path: String = path.iter().map(ToString::to_string).collect();
                bytes += path.len();
                paths.push(path);
            }
        });
        paths.into_iter().map(|path| Self {
            manager: owner.manager.clone(),
            operation: owner.operation,
            api_version: owner.api_version.clone(),
            subresource: owner.subresource.clone(),
            path,
        })
    }

    /// The owner as messages name it; an applier has no version.
    pub(super) fn owner(&self) -> impl fmt::Display + '_ {
        fmt::from_fn(|f| {
            write!(f, "{:?}", self.manager)?;
            if !self.subresource.is_empty() {
                write!(f, " with subresource {:?}", self.subresource)?;
            }
            if self.operation == ManagerOperation::Update {
                write!(f, " using {}", self.api_version)?;
            }
            Ok(())
        })
    }

    /// The sort key of conflicts with several owners.
    pub(super) fn owner_order(&self) -> (&str, ManagerOperation, &str, bool, &str) {
        (
            &self.manager,
            self.operation,
            &self.api_version,
            self.subresource.is_empty(),
            &self.subresource,
        )
    }

    fn same_owner(&self, other: &Self) -> bool {
        self.owner_order() == other.owner_order()
    }
}

/// The message for `conflicts`, which must be grouped by owner.
pub(super) fn message(conflicts: &[Conflict]) -> String {
    if let [only] = conflicts {
        let (owner, path) = (only.owner(), &only.path);
        return format!("Apply failed with 1 conflict: conflict with {owner}: {path}");
    }
    let mut text = format!("Apply failed with {} conflicts: ", conflicts.len());
    for (at, group) in conflicts.chunk_by(Conflict::same_owner).enumerate() {
        let break_ = if at > 0 { "\n" } else { "" };
        // Writing to a string does not fail.
        let _ = write!(text, "{break_}conflicts with {}:", group[0].owner());
        for conflict in group {
            let _ = write!(text, "\n- {}", conflict.path);
        }
    }
    text
}
