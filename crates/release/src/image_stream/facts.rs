//! What a decision about an ImageStream needs.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use neap_kit::key::Key;

use super::{
    api::{ImageStream, TagEvent},
    registries::Allowance,
};
use crate::oci::reference::ImageRef;

/// The settings of imports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The time between two imports of a scheduled tag.
    pub interval: Duration,
    /// Imports in one pass.
    pub per_pass: usize,
    /// Images that are remembered for each tag.
    pub history: usize,
    /// Requests to one registry per hour.
    pub requests_per_hour: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            interval: Duration::from_mins(15),
            per_pass: 50,
            history: 20,
            requests_per_hour: 3600,
        }
    }
}

/// What a decision about an ImageStream needs.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The stream.
    pub stream: Arc<ImageStream>,
    /// The time.
    pub now: Timestamp,
    /// The settings.
    pub settings: Settings,
    /// What may be asked of the registries that its tags name.
    pub allowances: BTreeMap<String, Allowance>,
    /// For tags that follow other streams: the image that these stand for, or none.
    pub followed: BTreeMap<String, Option<TagEvent>>,
    /// For tags that follow a stream of another namespace that does not allow it: that stream.
    pub closed: BTreeMap<String, Key>,
}

/// The registries that the tags of a stream name.
pub fn registries(stream: &ImageStream) -> Vec<String> {
    let sources = stream.spec.tags.iter().filter_map(|tag| tag.from.as_ref());
    let images = sources.filter_map(|from| from.name.parse::<ImageRef>().ok());
    let mut hosts: Vec<_> = images.map(|image| image.endpoint().host).collect();
    hosts.sort();
    hosts.dedup();
    hosts
}
