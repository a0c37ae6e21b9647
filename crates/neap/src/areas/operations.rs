//! `operations`: long-running work on clusters, step by step.

mod cli;

use neap_kit::area::Area;

use super::{AreaModule, Host, NoUpOptions};
use crate::exit::Failure;

#[derive(Debug)]
pub(crate) struct Operations;

impl AreaModule for Operations {
    const AREA: Area = Area::new("operations", "operations");
    type Command = cli::Command;
    type UpOptions = NoUpOptions;

    fn host(_: &mut Host<'_>, _: &Self::UpOptions) -> Result<(), Failure> {
        Ok(())
    }
}
