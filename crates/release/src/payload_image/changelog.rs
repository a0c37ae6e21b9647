//! What changed between two payloads, by the commits of their sources.
//!
//! The comparison is pure; the commits come from [`WorkingCopies`].

mod images;
mod markdown;
pub mod message;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Serialize;

use self::{
    images::{CodeChange, Images},
    message::Message,
};
use super::{
    go_json,
    image_references::FROM_RELEASE,
    info::{ReleaseInfo, info},
    reader::Payload,
    source,
    working_copies::{Commit, Error as CommitError, WorkingCopies},
};

const BUG_URL: &str = "https://bugzilla.redhat.com/show_bug.cgi?id=";
const ISSUE_URL: &str = "https://issues.redhat.com/browse/";

/// The two payloads are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("both names are names of the same payload")]
pub struct SamePayload;

/// What changed, in the form of `info --changelog -o json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Changelog {
    /// The older payload.
    pub from: ChangedRelease,
    /// The newer payload.
    pub to: ChangedRelease,
    /// Versions of what the payload brings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<ComponentVersion>,
    /// Images that the older payload does not have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub new_images: Vec<ChangedImage>,
    /// Images that the newer payload does not have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed_images: Vec<ChangedImage>,
    /// Images that were built again from the same commit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rebuilt_images: Vec<ChangedImage>,
    /// Images of other commits, those of one source together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub updated_images: Vec<ChangedImage>,
}

/// A payload that is compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangedRelease {
    /// Its name.
    pub name: String,
    /// When it was made.
    pub created: Option<jiff::Timestamp>,
    /// Its digest.
    pub digest: String,
    /// The payload that it is a copy of.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub promoted_from: String,
}

/// A version of what the payload brings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ComponentVersion {
    /// For people.
    pub name: String,
    /// In the newer payload.
    pub version: String,
    /// In the older one, if it is another.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub from: String,
}

/// An image, or those of one source.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangedImage {
    /// The component, or the components between commas.
    pub name: String,
    /// Where people look at the source.
    pub path: String,
    /// The beginning of the commit.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub short_commit: String,
    /// Where people look at the commit.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub commit: String,
    /// The digest, or the pull spec of an image without one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub image_ref: String,
    /// The pull requests that are in the newer payload only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<ChangedCommit>,
    /// Commits that belong to no pull request.
    #[serde(skip_serializing_if = "is_zero")]
    pub elided_commits: usize,
    /// Where people look at all commits.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub full_change_log: String,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// A pull request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ChangedCommit {
    /// Bugzilla's bugs and where people look at them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub bugs: BTreeMap<String, String>,
    /// Jira's issues and where people look at them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub issues: BTreeMap<String, String>,
    /// What it does.
    pub subject: String,
    /// Its number.
    #[serde(rename = "pullID", skip_serializing_if = "Option::is_none")]
    pub pull_id: Option<u64>,
    /// Where people look at it.
    #[serde(rename = "pullURL", skip_serializing_if = "String::is_empty")]
    pub pull_url: String,
    /// The commit.
    #[serde(rename = "commitID", skip_serializing_if = "String::is_empty")]
    pub commit_id: String,
    /// Where people look at it.
    #[serde(rename = "commitURL", skip_serializing_if = "String::is_empty")]
    pub commit_url: String,
    /// When it was made.
    #[serde(rename = "commitDate")]
    pub commit_date: String,
}

/// A bug that is fixed in the newer payload only.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Bug {
    /// Its id.
    pub id: String,
    /// Its status; empty if it was not looked up.
    pub status: String,
    /// Its priority.
    pub priority: String,
    /// What it is about.
    pub summary: String,
    /// 0 for Bugzilla, 1 for Jira.
    pub source: u8,
}

/// Compares two payloads. The second part are the repositories whose commits could not be read, with the
/// reasons; what they changed is left out.
pub fn changelog(
    from: &Payload,
    to: &Payload,
    copies: &WorkingCopies,
) -> Result<(Changelog, Vec<String>), SamePayload> {
    let (before, after) = (info(from, None), info(to, None));
    if before.digest == after.digest {
        return Err(SamePayload);
    }
    let images = Images::of(from, to);
    let mut problems = Vec::new();
    let mut updated_images = Vec::new();
    for change in &images.changed {
        match pull_requests(change, copies) {
            Ok((commits, elided_commits)) => updated_images.push(ChangedImage {
                commits,
                elided_commits,
                ..change.described()
            }),
            Err(error) => {
                let repository = change.new.location();
                let reason = neap_kit::why::chain(&error);
                problems.push(format!("Could not load commits for {repository}: {reason}"));
            }
        }
    }
    let changelog = Changelog {
        components: components(&before, &after),
        from: ChangedRelease::of(&before),
        to: ChangedRelease::of(&after),
        new_images: images.added,
        removed_images: images.removed,
        rebuilt_images: images.rebuilt,
        updated_images,
    };
    Ok((changelog, problems))
}

impl ChangedRelease {
    fn of(info: &ReleaseInfo) -> Self {
        let metadata = &info.references.metadata;
        let promoted_from = metadata.annotations.get(FROM_RELEASE);
        Self {
            name: metadata.name.clone(),
            created: metadata.creation_timestamp,
            digest: info.digest.clone(),
            promoted_from: promoted_from.cloned().unwrap_or_default(),
        }
    }
}

fn components(before: &ReleaseInfo, after: &ReleaseInfo) -> Vec<ComponentVersion> {
    let old = before.display_versions.as_ref();
    let new = after.display_versions.iter().flatten();
    let component = new.map(|(key, shown)| {
        let old = old.and_then(|old| old.get(key)).map(|old| &old.version);
        let name = match shown.display_name.as_str() {
            "" => key
                .split('-')
                .map(capitalised)
                .collect::<Vec<_>>()
                .join(" "),
            name => name.to_owned(),
        };
        ComponentVersion {
            name,
            from: old
                .filter(|old| **old != shown.version)
                .cloned()
                .unwrap_or_default(),
            version: shown.version.clone(),
        }
    });
    component.collect()
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// The pull requests between the commits of a source, and the number of commits without one.
fn pull_requests(
    change: &CodeChange,
    copies: &WorkingCopies,
) -> Result<(Vec<ChangedCommit>, usize), CommitError> {
    let (old, new) = (&change.old, &change.new);
    let range = (change.from.as_str(), change.to.as_str());
    let main_line = copies.commits(old, new, range, true)?;
    let has_merges = main_line.iter().any(|commit| commit.parents > 1);
    let all = if has_merges {
        main_line
    } else {
        copies.commits(old, new, range, false)?
    };
    let mut found = Vec::new();
    let mut elided = 0;
    for commit in &all {
        let request = match (has_merges, commit.parents > 1) {
            (true, true) => message::merged(&commit.message),
            (true, false) => None,
            (false, _) => message::squashed(&commit.message),
        };
        match request {
            Some((number, message)) => found.push(change.commit(commit, number, message)),
            None => elided += 1,
        }
    }
    Ok((found, elided))
}

impl CodeChange {
    fn commit(&self, commit: &Commit, number: u64, message: Message) -> ChangedCommit {
        let web = self.new.web();
        let linked = |ids: Vec<String>, url: &str| -> BTreeMap<String, String> {
            let linked = ids.into_iter().map(|id| (id.clone(), format!("{url}{id}")));
            linked.collect()
        };
        let commit_url = if self.new.is_on_github() {
            format!("{web}/commit/{}", commit.id)
        } else {
            String::new()
        };
        ChangedCommit {
            bugs: linked(message.bugs, BUG_URL),
            issues: linked(message.issues, ISSUE_URL),
            subject: message.subject,
            pull_id: Some(number),
            pull_url: format!("{web}/pull/{number}"),
            commit_id: commit.id.clone(),
            commit_url,
            commit_date: commit.date.clone(),
        }
    }
}

impl Changelog {
    /// The document, with a final newline.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        go_json::to_string(self).map(|text| text + "\n")
    }

    /// The bugs that the pull requests name: those of Bugzilla, and of Jira those of the product.
    pub fn bugs(&self) -> Vec<Bug> {
        let commits = self.updated_images.iter().flat_map(|it| &it.commits);
        let ids = commits.flat_map(|commit| {
            let issues = commit
                .issues
                .keys()
                .filter(|id| id.starts_with("OCPBUGS-") || id.starts_with("OCPBUGSM-"));
            let bugs = commit.bugs.keys().map(|id| (id, 0));
            bugs.chain(issues.map(|id| (id, 1)))
        });
        let mut bugs: Vec<_> = ids
            .map(|(id, source)| Bug {
                id: id.clone(),
                status: String::new(),
                priority: String::new(),
                summary: String::new(),
                source,
            })
            .collect();
        bugs.sort();
        bugs.dedup();
        bugs
    }
}
