//! `idle`: services that sleep.

mod cli;
mod up;

use neap_kit::area::Area;

use super::{AreaModule, Host};
use crate::exit::Failure;

#[derive(Debug)]
pub(crate) struct Idle;

impl AreaModule for Idle {
    const AREA: Area = neap_idle::area::AREA;
    type Command = cli::Command;
    type UpOptions = up::IdleUpOptions;

    fn host(host: &mut Host<'_>, options: &Self::UpOptions) -> Result<(), Failure> {
        up::host(host, options)
    }
}
