//! `release`: streams of releases and their verdicts.

mod cli;
mod demo;
mod registry;
mod tools;
mod up;

use neap_kit::area::Area;

pub(crate) use self::{cli::original_flags::with_verbosity, demo::DemoCommand};
use super::{AreaModule, Host};
use crate::exit::Failure;

#[derive(Debug)]
pub(crate) struct Release;

impl AreaModule for Release {
    const AREA: Area = neap_release::area::AREA;
    type Command = cli::Command;
    type UpOptions = up::ReleaseUpOptions;

    fn host(host: &mut Host<'_>, options: &Self::UpOptions) -> Result<(), Failure> {
        up::host(host, options)
    }
}
