//! The areas of the program: one list, which the command line, `neap up` and the read-only commands walk.
//!
//! To add an area, write the folder `areas/<name>/` and a line in each of the two lists below. The folder has
//! `cli.rs` (its command), `up.rs` (what `neap up` runs of it) and, next to it, `<name>.rs` with its
//! [`AreaModule`]. What it knows about its objects is in its crate, as a [`neap_kit::area::Area`].

#[macro_use]
mod list;
mod definitions;
mod farm;
mod fleet;
mod host;
mod idle;
mod operations;
mod release;
pub(crate) mod role;

use std::io::Write;

use clap::{Args, Subcommand};
use neap_kit::{
    area::{Area, AreaKind},
    why::Catalogue,
};
use serde_json::Value;

pub(crate) use self::{
    definitions::served,
    host::{Host, HostEnvironment, HostedParts, StartGate},
    release::{DemoCommand, with_verbosity},
};
use crate::{exit::Failure, symbols::Symbols};

// In the order in which they get their addresses in `neap up`. Idle is first: proofs and examples name the
// addresses of its resolver and operator.
areas! {
    Idle(idle::Idle),
    Farm(farm::Farm),
    Fleet(fleet::Fleet),
    Operations(operations::Operations),
    Release(release::Release),
}

/// What an area adds to the binary.
pub(crate) trait AreaModule {
    /// The registration of its crate.
    const AREA: Area;
    /// `neap <area>`.
    type Command: AreaCommand;
    /// Its flags of `neap up`; [`NoUpOptions`] if it has none.
    type UpOptions: Args + std::fmt::Debug;

    /// Adds to `neap up` what it runs of the area.
    fn host(host: &mut Host<'_>, options: &Self::UpOptions) -> Result<(), Failure>;
}

/// The command of an area, `neap <area>`. The doc comment of the type is its help.
pub(crate) trait AreaCommand: Args + std::fmt::Debug {
    /// Runs it and writes what it prints to `out`.
    fn run(self, symbols: Symbols, out: &mut dyn Write) -> Result<(), Failure>;

    /// The service name in logs and traces, for commands that a cluster runs: `neap-idle-operator`.
    fn role(&self) -> Option<&'static str> {
        None
    }
}

/// No flags of `neap up`.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct NoUpOptions {}

/// The kinds of all areas.
pub(crate) fn kinds() -> impl Iterator<Item = AreaKind> {
    all()
        .flat_map(|area| area.kinds.iter().chain(area.foreign_kinds))
        .copied()
}

/// How the area of an object sums it up and judges it, if an area has its kind.
pub(crate) fn kind_of(kind: &str, object: &Value) -> Option<AreaKind> {
    let group = object["apiVersion"]
        .as_str()
        .and_then(|version| version.split_once('/'));
    let group = group.map(|(group, _)| group);
    kinds().find(|one| {
        one.resource.name == kind && group.is_none_or(|group| group == one.resource.group())
    })
}

/// All error codes: of the program and of its areas.
pub(crate) fn catalogue() -> Catalogue {
    Catalogue::with_areas(all().map(|area| area.codes))
}

#[cfg(test)]
mod tests;
