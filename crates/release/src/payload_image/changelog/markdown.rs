//! A changelog as Markdown.

use std::fmt::Write;

use super::{ChangedCommit, ChangedImage, Changelog};

impl Changelog {
    /// The document that people read.
    pub fn to_markdown(&self) -> String {
        let (from, to) = (&self.from, &self.to);
        let created = to
            .created
            .map(|time| time.strftime("%Y-%m-%d %H:%M:%S +0000 UTC").to_string());
        let mut out = format!(
            "# {}\n\nCreated: {}\n\nImage Digest: `{}`\n\n",
            to.name,
            created.unwrap_or_default(),
            to.digest
        );
        if !to.promoted_from.is_empty() {
            let _ = writeln!(out, "Promoted from {}\n", to.promoted_from);
        }
        let _ = writeln!(out, "\n## Changes from {}\n", from.name);
        let components = self.components.iter().map(|component| {
            let (name, version) = (&component.name, &component.version);
            match component.from.as_str() {
                "" => format!("* {name} {version}"),
                from => format!("* {name} upgraded from {from} to {version}"),
            }
        });
        section(&mut out, "Components", components);
        section(&mut out, "New images", self.new_images.iter().map(image));
        let removed = self.removed_images.iter();
        section(
            &mut out,
            "Removed images",
            removed.map(|it| format!("* {}", it.name)),
        );
        let rebuilt = self.rebuilt_images.iter().map(image);
        section(&mut out, "Rebuilt images without code change", rebuilt);
        for updated in &self.updated_images {
            let title = match updated.path.as_str() {
                "" => updated.name.clone(),
                path => format!("[{}]({path})", updated.name),
            };
            section(&mut out, &title, lines(updated));
        }
        out
    }
}

/// A section, unless it is empty, and the space after it.
fn section(out: &mut String, title: &str, lines: impl IntoIterator<Item = String>) {
    let mut lines = lines.into_iter().peekable();
    if lines.peek().is_none() {
        return;
    }
    let _ = writeln!(out, "### {title}\n");
    for line in lines {
        let _ = writeln!(out, "{line}");
    }
    out.push_str("\n\n");
}

fn image(image: &ChangedImage) -> String {
    let (name, digest) = (&image.name, &image.image_ref);
    let name = match image.path.as_str() {
        "" => name.clone(),
        path => format!("[{name}]({path})"),
    };
    match image.commit.as_str() {
        "" => format!("* {name} `{digest}`"),
        url => format!("* {name} git [{}]({url}) `{digest}`", image.short_commit),
    }
}

fn lines(updated: &ChangedImage) -> Vec<String> {
    let mut lines: Vec<_> = updated.commits.iter().map(commit).collect();
    if updated.elided_commits > 0 {
        let count = updated.elided_commits;
        lines.push(format!(
            "* And {count} elided commits (e.g. from squash or rebase merges)"
        ));
    }
    let full = &updated.full_change_log;
    lines.push(if updated.path.is_empty() {
        format!("* {full}")
    } else {
        format!("* [Full changelog]({full})")
    });
    lines
}

fn commit(commit: &ChangedCommit) -> String {
    let bugs = commit.bugs.iter().enumerate().map(|(place, (id, url))| {
        let text = if place == 0 {
            format!("Bug {id}")
        } else {
            id.clone()
        };
        format!("[{text}]({url})")
    });
    let issues = commit
        .issues
        .iter()
        .map(|(id, url)| format!("[{id}]({url})"));
    let references: Vec<_> = bugs.chain(issues).collect();
    let references = match references.len() {
        0 => String::new(),
        _ => references.join(", ") + ": ",
    };
    let subject = commit.subject.replace('<', "&lt;").replace('>', "&gt;");
    let number = commit.pull_id.unwrap_or_default();
    format!("* {references}{subject} [#{number}]({})", commit.pull_url)
}
