//! Manifests name images and versions of the time when they were written; in a payload they name those of the
//! release.
//!
//! Replacement is textual, on the bytes of a manifest, in one pass: what was put in is not searched again. The
//! longest of several names that match is replaced.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

/// The placeholder for a version, optionally followed by `-` and the name of a component.
const PLACEHOLDER: &[u8] = b"0.0.1-snapshot";

/// What to put in place of what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Substitution {
    /// From the name of an image in manifests to the image of the release.
    pub images: BTreeMap<String, String>,
    /// The version of the release, without its build part; none if the name of the release is no version.
    pub release: Option<String>,
    /// The versions of components. None if the component has no `image-references`, which then cannot use
    /// any.
    pub versions: Option<BTreeMap<String, String>>,
}

/// Why a manifest cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A version of a component that is not known.
    #[error(
        "{text} asks for the version of {key:?}, which no image in image-references has; known are: {known}"
    )]
    UnknownVersion {
        /// The placeholder.
        text: String,
        /// The key.
        key: String,
        /// The known keys.
        known: String,
    },
    /// A placeholder that names nothing.
    #[error("{0:?} names no component after its last hyphen")]
    EmptyVersion(String),
    /// A version, but the component says nothing about images.
    #[error(
        "{0} asks for the version of a component, and there is no image-references beside the manifest"
    )]
    NoReferences(String),
}

/// A manifest with the release's images and versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Substituted {
    /// The manifest.
    pub content: Vec<u8>,
    /// Names of images that are still there, because what follows them is not understood.
    pub remaining: Vec<String>,
}

impl Substitution {
    /// Replaces all names and placeholders in `content`.
    pub fn apply(&self, content: &[u8]) -> Result<Substituted, Error> {
        let mut written = Vec::with_capacity(content.len());
        let mut remaining = Vec::new();
        let mut at = 0;
        while at < content.len() {
            if starts_a_name(content, at) {
                match self.image_at(content, at) {
                    Found::Image { target, end } => {
                        written.extend_from_slice(target.as_bytes());
                        at = end;
                        continue;
                    }
                    Found::Unclear(source) => remaining.push(source.to_owned()),
                    Found::Nothing => {}
                }
                if let Some((version, end)) = self.version_at(content, at)? {
                    written.extend_from_slice(version.as_bytes());
                    at = end;
                    continue;
                }
            }
            written.push(content[at]);
            at += 1;
        }
        remaining.sort();
        remaining.dedup();
        Ok(Substituted {
            content: written,
            remaining,
        })
    }

    fn image_at(&self, content: &[u8], at: usize) -> Found<'_> {
        let rest = &content[at..];
        // Names that begin with another name sort after it.
        let candidates = self.images.iter().rev();
        let mut unclear = None;
        for (source, target) in candidates.filter(|(source, _)| rest.starts_with(source.as_bytes()))
        {
            match end_of_reference(&rest[source.len()..]) {
                End::Of(locator) => {
                    let end = at + source.len() + locator;
                    return Found::Image { target, end };
                }
                End::OtherName => {}
                End::Unclear => unclear = unclear.or(Some(source)),
            }
        }
        unclear.map_or(Found::Nothing, |source| Found::Unclear(source))
    }

    fn version_at(&self, content: &[u8], at: usize) -> Result<Option<(String, usize)>, Error> {
        let Some(rest) = content[at..].strip_prefix(PLACEHOLDER) else {
            return Ok(None);
        };
        let run = |it: &&u8| it.is_ascii_lowercase() || it.is_ascii_digit() || **it == b'-';
        let length = rest.iter().take_while(run).count();
        let suffix = String::from_utf8_lossy(&rest[..length]).into_owned();
        let end = at + PLACEHOLDER.len() + length;
        if suffix.is_empty() {
            return Ok(self.release.clone().map(|version| (version, end)));
        }
        let Some(key) = suffix.strip_prefix('-') else {
            return Ok(None);
        };
        let text = format!("{}{suffix}", String::from_utf8_lossy(PLACEHOLDER));
        let Some(versions) = &self.versions else {
            return Err(Error::NoReferences(text));
        };
        if key.is_empty() {
            return Err(Error::EmptyVersion(text));
        }
        match versions.get(key) {
            Some(version) => Ok(Some((version.clone(), end))),
            None => Err(Error::UnknownVersion {
                text,
                key: key.to_owned(),
                known: known(versions),
            }),
        }
    }
}

fn known(versions: &BTreeMap<String, String>) -> String {
    if versions.is_empty() {
        return "none".to_owned();
    }
    versions.keys().cloned().collect::<Vec<_>>().join(", ")
}

enum Found<'a> {
    Image { target: &'a str, end: usize },
    Unclear(&'a str),
    Nothing,
}

enum End {
    /// The reference ends after a tag or digest of this length.
    Of(usize),
    /// The name goes on: it is the name of something else.
    OtherName,
    /// Neither is certain.
    Unclear,
}

/// What follows the name of an image.
fn end_of_reference(rest: &[u8]) -> End {
    let locator = locator(rest);
    match rest.get(locator) {
        None => End::Of(locator),
        Some(next) if is_boundary(*next) => End::Of(locator),
        Some(b'/') => End::OtherName,
        Some(next) if locator == 0 && (is_word(*next) || matches!(next, b'-' | b'.')) => {
            End::OtherName
        }
        Some(_) => End::Unclear,
    }
}

/// The length of `:tag` or `@algorithm:hex`; 0 if there is none.
fn locator(rest: &[u8]) -> usize {
    match rest.first() {
        Some(b':') => {
            let first = rest.get(1).is_some_and(|it| is_word(*it));
            let run = rest[1..]
                .iter()
                .take_while(|it| is_word(**it) || matches!(it, b'.' | b'-'));
            let length = run.count();
            if first && length <= 128 {
                1 + length
            } else {
                0
            }
        }
        Some(b'@') => {
            let algorithm = rest[1..].iter().take_while(|it| {
                it.is_ascii_alphanumeric() || matches!(it, b'+' | b'.' | b'_' | b'-')
            });
            let algorithm = algorithm.count();
            let Some(hex) = rest
                .get(1 + algorithm..)
                .and_then(|rest| rest.strip_prefix(b":"))
            else {
                return 0;
            };
            let hex = hex.iter().take_while(|it| it.is_ascii_hexdigit()).count();
            if algorithm > 0 && hex >= 2 {
                2 + algorithm + hex
            } else {
                0
            }
        }
        _ => 0,
    }
}

/// Whitespace and quotes; and the separators of lists, before which the original replaces nothing.
fn is_boundary(byte: u8) -> bool {
    byte.is_ascii_whitespace()
        || matches!(byte, b'"' | b'\'' | b'`' | b',' | b';' | b')' | b']' | b'}')
}

/// A name starts at the start, and after what cannot belong to a longer name.
fn starts_a_name(content: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| content[before]);
    before.is_none_or(|before| !is_word(before) && !matches!(before, b'.' | b'-'))
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
