//! Build farms in `neap up`: the operator in this process, from the first component of a farm on.

use clap::Args;
use neap_farm::{api::OPERATOR_NAMESPACE, operator};

use crate::{
    areas::Host,
    exit::{Exit, Failure},
};

/// Flags of `neap up` for build farms.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct FarmUpOptions {
    /// Do not run the operator of build farms, for example to install deploy/farm instead
    #[arg(long, conflicts_with = "bare")]
    without_farm: bool,
}

pub(super) fn host(host: &mut Host<'_>, options: &FarmUpOptions) -> Result<(), Failure> {
    if options.without_farm {
        return Ok(());
    }
    let program = std::env::current_exe().map_err(|error| failed(&error.to_string()))?;
    let context = host.context().clone();
    host.when_used(move || {
        let components = operator::components(&context, program, OPERATOR_NAMESPACE);
        components.map_err(|error| failed(&error.to_string()))
    });
    Ok(())
}

fn failed(why: &str) -> Failure {
    let what = "the operator of build farms cannot be set up";
    Failure::new("NT-FARM-0001", Exit::Failed, what, why)
        .remedy("start it again; with -vv the log says more")
}
