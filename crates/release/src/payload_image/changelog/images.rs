//! Which images changed, and in which way.

use std::collections::BTreeMap;

use super::{ChangedImage, source};
use crate::payload_image::{
    image_references::Tag,
    labels::{COMMIT_ID, SOURCE_LOCATION},
    reader::Payload,
    source::Source,
    text::digest_of,
};

/// The images that are not the same.
#[derive(Debug, Default)]
pub(super) struct Images {
    pub(super) added: Vec<ChangedImage>,
    pub(super) removed: Vec<ChangedImage>,
    pub(super) rebuilt: Vec<ChangedImage>,
    pub(super) changed: Vec<CodeChange>,
}

/// Images of one source that were built from another commit.
#[derive(Debug)]
pub(super) struct CodeChange {
    pub(super) names: Vec<String>,
    pub(super) old: Source,
    pub(super) new: Source,
    pub(super) from: String,
    pub(super) to: String,
}

impl Images {
    pub(super) fn of(from: &Payload, to: &Payload) -> Self {
        let mut found = Self::default();
        let before: BTreeMap<_, _> = tags(from).collect();
        let after: BTreeMap<_, _> = tags(to).collect();
        for name in before.keys() {
            if !after.contains_key(name) {
                found.removed.push(ChangedImage {
                    name: (*name).to_owned(),
                    ..ChangedImage::default()
                });
            }
        }
        for (name, tag) in after {
            match before.get(name) {
                None => found.added.push(described(tag)),
                Some(old) if old.pull_spec() == tag.pull_spec() => {}
                // The same image at another place.
                Some(old) if is_digest(tag) && digest_of(old) == digest_of(tag) => {}
                Some(old) => found.compare(old, tag),
            }
        }
        found
    }

    /// An image whose commit or source is not known counts as rebuilt: it is listed, and no commits are.
    fn compare(&mut self, old: &Tag, new: &Tag) {
        let (from, to) = (old.annotation(COMMIT_ID), new.annotation(COMMIT_ID));
        let sources = [old, new].map(|tag| Source::parse(tag.annotation(SOURCE_LOCATION)));
        let ([Ok(before), Ok(after)], true) = (sources, is_change(from, to)) else {
            self.rebuilt.push(described(new));
            return;
        };
        let same = self
            .changed
            .iter_mut()
            .find(|change| (&change.new, &*change.from, &*change.to) == (&after, from, to));
        match same {
            Some(change) => change.names.push(new.name.clone()),
            None => self.changed.push(CodeChange {
                names: vec![new.name.clone()],
                old: before,
                new: after,
                from: from.to_owned(),
                to: to.to_owned(),
            }),
        }
    }
}

fn is_change(from: &str, to: &str) -> bool {
    from != to && source::commit(from).is_ok() && source::commit(to).is_ok()
}

fn is_digest(tag: &Tag) -> bool {
    tag.pull_spec().is_some_and(|spec| spec.contains('@'))
}

fn tags(payload: &Payload) -> impl Iterator<Item = (&str, &Tag)> {
    let tags = payload.contents.references.spec.tags.iter();
    tags.map(|tag| (tag.name.as_str(), tag))
}

/// An image with its source, as far as it is known.
fn described(tag: &Tag) -> ChangedImage {
    let image = ChangedImage {
        name: tag.name.clone(),
        image_ref: digest_of(tag),
        ..ChangedImage::default()
    };
    let commit = tag.annotation(COMMIT_ID);
    let source = Source::parse(tag.annotation(SOURCE_LOCATION));
    let Some(source) = source.ok().filter(Source::is_on_github) else {
        return image;
    };
    let web = source.web();
    let Ok(commit) = source::commit(commit) else {
        return ChangedImage { path: web, ..image };
    };
    ChangedImage {
        short_commit: source::short(commit).to_owned(),
        commit: format!("{web}/commit/{commit}"),
        path: web,
        ..image
    }
}

impl CodeChange {
    /// Its images, without the commits.
    pub(super) fn described(&self) -> ChangedImage {
        let (web, from, to) = (self.new.web(), &self.from, &self.to);
        let (short_from, short_to) = (source::short(from), source::short(to));
        let (path, full_change_log) = if self.new.is_on_github() {
            (
                format!("{web}/tree/{to}"),
                format!("{web}/compare/{from}...{to}"),
            )
        } else {
            let location = self.new.location();
            (
                String::new(),
                format!("{location} from {short_from} to {short_to}"),
            )
        };
        ChangedImage {
            name: self.names.join(", "),
            path,
            full_change_log,
            ..ChangedImage::default()
        }
    }
}
