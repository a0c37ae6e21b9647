//! What `neap up` offers to an area, and what the area adds to it.

use std::{
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use neap_kit::{
    area::Area,
    context::Context,
    lazy::{self, FirstUse},
    manager::{Component, ComponentStarter, Health},
};
use neap_world::node::address::Block;
use tokio_util::task::{TaskTracker, task_tracker::TaskTrackerToken};

use super::definitions;
use crate::{
    exit::{Exit, Failure},
    up::private,
};

/// The addresses of a block that no pod gets and areas may have: those after the node's.
const AREA_ADDRESSES: std::ops::RangeInclusive<u32> = 1..=64;
/// The addresses after those, for what an area makes while `neap up` runs.
const LATE_ADDRESSES: std::ops::RangeInclusive<u32> = 65..=253;

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
    /// Starts components while the others run.
    pub(crate) starter: &'a ComponentStarter,
}

/// Something that has to happen before `neap up` says that it is ready. Dropped when it has happened.
#[derive(Debug)]
pub(crate) struct StartGate {
    _token: TaskTrackerToken,
}

/// What areas have added to `neap up`.
#[derive(Debug, Default)]
pub(crate) struct HostedParts {
    /// What runs until the end.
    pub(crate) components: Vec<Component>,
    /// What the start-up transcript says: a title and a text, such as the URL of a registry.
    pub(crate) announcements: Vec<(&'static str, String)>,
    /// Empty when everything has happened that has to happen before `neap up` is ready.
    pub(crate) gates: TaskTracker,
}

/// What `neap up` offers to an area.
#[derive(Debug)]
pub(crate) struct Host<'a> {
    environment: HostEnvironment<'a>,
    area: Area,
    addresses: u32,
    /// Installed when `neap up` runs already, before it says that it is ready.
    definitions: Vec<fn() -> Vec<CustomResourceDefinition>>,
    parts: HostedParts,
}

impl<'a> Host<'a> {
    pub(crate) fn new(environment: HostEnvironment<'a>) -> Self {
        Self {
            environment,
            area: Area::new("", ""),
            addresses: 0,
            definitions: Vec::new(),
            parts: HostedParts::default(),
        }
    }

    /// What follows is about this area.
    pub(super) fn enter(&mut self, area: &Area) {
        self.area = *area;
    }

    /// What the areas have added.
    pub(crate) fn into_parts(mut self) -> HostedParts {
        if !self.definitions.is_empty() {
            let gate = self.start_gate();
            let context = self.environment.context;
            let component = definitions::component(context, self.definitions, gate);
            self.parts.components.push(component);
        }
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
    pub(crate) fn api_url(&self) -> &'a str {
        self.environment.api_url
    }

    /// A folder that only this user may read and only this area uses. It stays if `neap up` has a data folder.
    pub(crate) fn folder(&self) -> Result<PathBuf, Failure> {
        let folder = self.environment.folder.join(self.area.name);
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

    /// Addresses for what an area makes later, such as clusters. No pod has them; only one area may use them.
    pub(crate) fn late_addresses(&self) -> Vec<IpAddr> {
        let node = u32::from(self.environment.block.node());
        let addresses = LATE_ADDRESSES.map(|number| IpAddr::V4(Ipv4Addr::from(node + number)));
        addresses.collect()
    }

    /// Adds what runs until the end. Names of components start with that of the area.
    pub(crate) fn add(&mut self, components: impl IntoIterator<Item = Component>) {
        self.parts.components.extend(components);
    }

    /// Installs the definitions of the area, and starts the components that `start` returns when the area is
    /// first used: with the first object of one of its kinds, also of an earlier run, or when the returned
    /// handle is marked. What `start` needs of the host is taken before and moved into it.
    pub(crate) fn when_used(
        &mut self,
        start: impl FnOnce() -> Result<Vec<Component>, Failure> + Send + 'static,
    ) -> FirstUse {
        let first_use = FirstUse::default();
        let HostEnvironment {
            context, starter, ..
        } = self.environment;
        let access = (context.client.clone(), context.clock);
        let used = (self.area.definitions, first_use.clone());
        let start = || start().map_err(|failure| failure.to_string());
        let component = lazy::component(self.area.name, access, starter.clone(), used, start);
        self.install_definitions();
        self.add([component]);
        first_use
    }

    /// Installs the definitions of the area, whether or not something runs for them.
    pub(crate) fn install_definitions(&mut self) {
        self.definitions.push(self.area.definitions);
    }

    /// `neap up` does not say that it is ready before the gate is dropped, or a bound has passed.
    pub(crate) fn start_gate(&self) -> StartGate {
        StartGate {
            _token: self.parts.gates.token(),
        }
    }

    /// Adds a line to the start-up transcript: a title in one word, and a text such as a URL.
    pub(crate) fn announce(&mut self, title: &'static str, text: impl Into<String>) {
        self.parts.announcements.push((title, text.into()));
    }
}
