//! What `neap up` offers to an area, and what the area adds to it.

use std::{
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
};

use neap_kit::{
    area::Area,
    context::Context,
    manager::{Component, Health},
};
use neap_world::node::address::Block;

use crate::{
    exit::{Exit, Failure},
    up::private,
};

/// The addresses of a block that no pod gets and areas may have: those after the node's.
const AREA_ADDRESSES: std::ops::RangeInclusive<u32> = 1..=64;

/// What `neap up` has when areas are added to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostEnvironment<'a> {
    /// The client, the watches, leadership without an election, and the clock.
    pub(crate) context: &'a Context,
    /// The health of the process, to which an area may lead.
    pub(crate) health: &'a Health,
    /// The addresses of this `neap up`.
    pub(crate) block: Block,
    /// The folder for files of areas. It is removed at the end if `neap up` has no data folder.
    pub(crate) folder: &'a Path,
    /// The URL of the API server.
    pub(crate) api_url: &'a str,
}

/// What areas have added to `neap up`.
#[derive(Debug, Default)]
pub(crate) struct HostedParts {
    /// What runs until the end.
    pub(crate) components: Vec<Component>,
    /// What the start-up transcript says: a title and a text, such as the URL of a registry.
    pub(crate) announcements: Vec<(&'static str, String)>,
}

/// What `neap up` offers to an area.
#[derive(Debug)]
pub(crate) struct Host<'a> {
    environment: HostEnvironment<'a>,
    area: &'static str,
    addresses: u32,
    parts: HostedParts,
}

impl<'a> Host<'a> {
    pub(crate) fn new(environment: HostEnvironment<'a>) -> Self {
        Self {
            environment,
            area: "",
            addresses: 0,
            parts: HostedParts::default(),
        }
    }

    /// What follows is about this area.
    pub(super) fn enter(&mut self, area: &Area) {
        self.area = area.name;
    }

    /// What the areas have added.
    pub(crate) fn into_parts(self) -> HostedParts {
        self.parts
    }

    /// The client, the watches, leadership without an election, and the clock.
    pub(crate) fn context(&self) -> &'a Context {
        self.environment.context
    }

    /// The health of the process.
    pub(crate) fn health(&self) -> Health {
        self.environment.health.clone()
    }

    /// The URL of the API server, for programs that are not in this process.
    #[expect(dead_code, reason = "for areas that start processes; idle has none")]
    pub(crate) fn api_url(&self) -> &'a str {
        self.environment.api_url
    }

    /// A folder that only this user may read and only this area uses. It stays if `neap up` has a data folder.
    pub(crate) fn folder(&self) -> Result<PathBuf, Failure> {
        let folder = self.environment.folder.join(self.area);
        private::create_folder(&folder).map_err(|error| {
            Failure::new(
                "NT-UP-0019",
                Exit::Refused,
                &format!("cannot create the folder {}", folder.display()),
                &error.to_string(),
            )
            .remedy("check the permissions and the free space of the folder")
        })?;
        Ok(folder)
    }

    /// An address of this machine that no pod and no other area has, for listeners on well-known ports.
    pub(crate) fn address(&mut self) -> Result<IpAddr, Failure> {
        self.addresses += 1;
        if !AREA_ADDRESSES.contains(&self.addresses) {
            let why = format!("{} of them are given to areas", AREA_ADDRESSES.end());
            return Err(Failure::new(
                "NT-UP-0018",
                Exit::Failed,
                "the areas need more addresses than there are",
                &why,
            ));
        }
        let node = u32::from(self.environment.block.node());
        Ok(IpAddr::V4(Ipv4Addr::from(node + self.addresses)))
    }

    /// Adds what runs until the end. Names of components start with that of the area.
    pub(crate) fn add(&mut self, components: impl IntoIterator<Item = Component>) {
        self.parts.components.extend(components);
    }

    /// Adds a line to the start-up transcript: a title in one word, and a text such as a URL.
    #[expect(
        dead_code,
        reason = "for areas with addresses that users need; idle has none"
    )]
    pub(crate) fn announce(&mut self, title: &'static str, text: impl Into<String>) {
        self.parts.announcements.push((title, text.into()));
    }
}
