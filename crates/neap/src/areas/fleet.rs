//! `fleet`: clusters behind an ARM-shaped API.

mod cli;
mod factory;
mod lazy_frontend;
mod provider;
mod up;

use neap_kit::area::Area;

use super::{AreaModule, Host};
use crate::exit::Failure;

pub(super) use self::cli::{ProviderArgs, client::Provider};

#[derive(Debug)]
pub(crate) struct Fleet;

impl AreaModule for Fleet {
    const AREA: Area = neap_fleet::area::AREA;
    type Command = cli::Command;
    type UpOptions = up::FleetUpOptions;

    fn host(host: &mut Host<'_>, options: &Self::UpOptions) -> Result<(), Failure> {
        up::host(host, options)
    }
}
