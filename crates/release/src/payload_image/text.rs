//! Payloads as text for people.

#[cfg(test)]
mod tests;

use std::fmt::Write;

use super::{
    image_references::Tag,
    info::ReleaseInfo,
    labels::{COMMIT_ID, SOURCE_LOCATION},
    reader::Payload,
};
use crate::oci::reference::ImageRef;

/// What is shown of each image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Columns {
    /// Its digest.
    #[default]
    Digest,
    /// Its pull spec.
    PullSpec,
    /// Its source.
    Commit,
    /// The address of its source.
    CommitUrl,
    /// Its size; needs the images themselves.
    Size,
}

/// A payload as text.
pub fn describe(payload: &Payload, info: &ReleaseInfo, columns: Columns) -> String {
    let contents = &payload.contents;
    let mut out = String::new();
    let known = |text: &str| {
        if text.is_empty() {
            "unknown".to_owned()
        } else {
            text.to_owned()
        }
    };
    let platform = format!(
        "{}/{}",
        known(&payload.config.os),
        known(&payload.config.architecture)
    );
    let platform = if payload.list.is_some() {
        format!("multi ({platform})")
    } else {
        platform
    };
    let digest = if info.list_digest.is_empty() {
        &info.digest
    } else {
        &info.list_digest
    };
    let mut head = vec![row(&["Name:", contents.name()]), row(&["Digest:", digest])];
    if let Some(created) = payload.config.created {
        head.push(row(&["Created:", &created.to_string()]));
    }
    head.push(row(&["OS/Arch:", &platform]));
    head.push(row(&[
        "Manifests:",
        &contents.manifests().len().to_string(),
    ]));
    let others = contents.other_files().len();
    if others > 0 {
        head.push(row(&["Metadata files:", &others.to_string()]));
    }
    out += &aligned(&head, "");
    let _ = writeln!(out, "\nPull From: {}", payload.by_digest());
    out += &metadata(info);
    if let Some(versions) = &info.display_versions {
        out += "\nComponent Versions:\n";
        let rows: Vec<_> = versions
            .iter()
            .map(|(key, it)| row(&[key, &it.version, &it.display_name]))
            .collect();
        out += &aligned(&rows, "  ");
    }
    out += "\nImages:\n";
    out += &aligned(&images(info, columns), "  ");
    if let Some(warnings) = &info.warnings {
        out += "\nWarnings:\n";
        for warning in warnings {
            let _ = writeln!(out, "* {warning}");
        }
    }
    out
}

fn metadata(info: &ReleaseInfo) -> String {
    let Some(metadata) = &info.metadata else {
        return String::new();
    };
    let mut upgrades = metadata.previous.clone();
    upgrades.sort_by_cached_key(|text| semver::Version::parse(text).ok());
    let upgrades = if upgrades.is_empty() {
        "<none>".to_owned()
    } else {
        upgrades.join(", ")
    };
    let mut out = String::from("\nRelease Metadata:\n");
    out += &aligned(
        &[
            row(&["Version:", &metadata.version]),
            row(&["Upgrades:", &upgrades]),
        ],
        "  ",
    );
    if !metadata.metadata.is_empty() {
        out += "  Metadata:\n";
        for (key, value) in &metadata.metadata {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            if !text.is_empty() {
                let _ = writeln!(out, "    {key}: {text}");
            }
        }
    }
    out
}

fn images(info: &ReleaseInfo, columns: Columns) -> Vec<Vec<String>> {
    let tags = &info.references.spec.tags;
    let mut rows = vec![match columns {
        Columns::Digest => row(&["NAME", "DIGEST"]),
        Columns::PullSpec => row(&["NAME", "PULL SPEC"]),
        Columns::Commit => row(&["NAME", "REPO", "COMMIT"]),
        Columns::CommitUrl => row(&["NAME", "URL"]),
        Columns::Size => row(&["NAME", "LAYERS", "SIZE MB", "UNIQUE MB"]),
    }];
    if columns == Columns::Size {
        rows.extend(sizes(info));
        return rows;
    }
    rows.extend(tags.iter().map(|tag| {
        let (source, commit) = (tag.annotation(SOURCE_LOCATION), tag.annotation(COMMIT_ID));
        match columns {
            Columns::Digest => row(&[&tag.name, &digest_of(tag)]),
            Columns::Commit => row(&[&tag.name, source, commit]),
            Columns::CommitUrl => row(&[&tag.name, &commit_url(source, commit)]),
            Columns::PullSpec | Columns::Size => {
                row(&[&tag.name, tag.pull_spec().unwrap_or_default()])
            }
        }
    }));
    rows
}

/// Sizes, with each layer counted once in the total.
fn sizes(info: &ReleaseInfo) -> Vec<Vec<String>> {
    let megabytes = |bytes: u64| format!("{:.1}", bytes as f64 / 1_048_576.0);
    let images = info.images.iter().flatten();
    let mut seen = std::collections::BTreeSet::new();
    let mut all = 0;
    let mut rows: Vec<_> = images
        .map(|(name, image)| {
            let size = image.layers.iter().map(|it| it.size).sum();
            let unique: u64 = image
                .layers
                .iter()
                .filter(|it| seen.insert(it.digest.clone()))
                .map(|it| it.size)
                .sum();
            all += unique;
            row(&[
                name,
                &image.layers.len().to_string(),
                &megabytes(size),
                &megabytes(unique),
            ])
        })
        .collect();
    rows.push(row(&[
        "TOTAL",
        &seen.len().to_string(),
        "",
        &megabytes(all),
    ]));
    rows
}

/// The digest of an image; its pull spec if it has none.
pub fn digest_of(tag: &Tag) -> String {
    let spec = tag.pull_spec().unwrap_or_default();
    let image: Option<ImageRef> = spec.parse().ok();
    let digest = image.as_ref().and_then(|image| image.digest_text());
    digest.unwrap_or(spec).to_owned()
}

/// Where a commit is shown, as far as that is known.
pub fn commit_url(source: &str, commit: &str) -> String {
    match web_path(source) {
        Some(path) if !commit.is_empty() => format!("https://github.com/{path}/commit/{commit}"),
        _ => format!("{source} {commit}").trim().to_owned(),
    }
}

/// Owner and name of a repository on github.com.
pub fn web_path(source: &str) -> Option<&str> {
    let path = [
        "https://github.com/",
        "http://github.com/",
        "ssh://git@github.com/",
        "git@github.com:",
    ];
    let path = path.iter().find_map(|prefix| source.strip_prefix(prefix))?;
    let path = path.trim_end_matches('/');
    Some(path.strip_suffix(".git").unwrap_or(path))
}

/// The manifests and other files, each after its name.
pub fn contents(payload: &Payload) -> String {
    let contents = &payload.contents;
    let mut out = String::new();
    for (name, file) in contents
        .other_files()
        .into_iter()
        .chain(contents.manifests())
    {
        let text = String::from_utf8_lossy(&file.content);
        let _ = writeln!(out, "# {name}\n{}", text.trim_end_matches('\n'));
    }
    out
}

/// Cells. Each is one line: a name with a newline must not look like the rows after it.
pub fn row(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| cell.replace('\n', "\\n")).collect()
}

/// Rows whose cells begin in columns, two spaces apart.
pub fn aligned(rows: &[Vec<String>], indent: &str) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = indent.to_owned();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:width$}  ");
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}
