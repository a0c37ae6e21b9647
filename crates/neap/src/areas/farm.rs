//! `farm`: Buildbarn farms.

mod cli;
mod up;

use neap_kit::area::Area;

use super::{AreaModule, Host};
use crate::exit::Failure;

#[derive(Debug)]
pub(crate) struct Farm;

impl AreaModule for Farm {
    const AREA: Area = neap_farm::area::AREA;
    type Command = cli::Command;
    type UpOptions = up::FarmUpOptions;

    fn host(host: &mut Host<'_>, options: &Self::UpOptions) -> Result<(), Failure> {
        up::host(host, options)
    }
}
