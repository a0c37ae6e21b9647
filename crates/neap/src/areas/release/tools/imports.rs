//! `imports`: the process that imports the tags of ImageStreams where the API server does not.

use std::time::Duration;

use clap::Args;
use neap_release::{
    image_stream::{controller, facts::Settings},
    reimport::has_image_stream_imports,
};

use super::registry::RegistryOptions;
use crate::{
    areas::{
        release::cli::controllers::not_set_up,
        role::{self, RoleArgs},
    },
    cli::duration,
    exit::{Exit, Failure},
    inspect::{block_on, cluster::Cluster},
};

/// The name of the process, of its Lease and of its account.
pub(super) const ROLE: &str = "neap-release-imports";

#[derive(Debug, Args)]
pub(in super::super) struct ImportsOptions {
    #[command(flatten)]
    role: RoleArgs,

    /// The time between two imports of a scheduled tag
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "15m")]
    interval: Duration,

    /// Requests to one registry in an hour, of all imports together
    #[arg(long, value_name = "NUMBER", default_value_t = 3600)]
    requests_per_hour: u32,

    /// Images that are remembered for each tag
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    history: u32,

    #[command(flatten)]
    registry: RegistryOptions,
}

pub(super) fn run(options: &ImportsOptions) -> Result<(), Failure> {
    block_on(refuse_on_openshift(options))?;
    role::run(ROLE, &options.role, |assembly, _| {
        let context = assembly.context();
        let telemetry = context.watches.process().telemetry().clone();
        let client = options.registry.client_of(ROLE, telemetry)?;
        let settings = Settings {
            interval: options.interval,
            requests_per_hour: options.requests_per_hour,
            history: options.history as usize,
            ..Settings::default()
        };
        let imports = controller::component(context, &client, settings);
        Ok(vec![
            imports.map_err(|error| not_set_up(&error.to_string()))?,
        ])
    })
}

/// OpenShift imports by itself; two that write the same status would undo each other's work.
async fn refuse_on_openshift(options: &ImportsOptions) -> Result<(), Failure> {
    let cluster = Cluster::connect(&options.role.cluster, None).await?;
    let imports = has_image_stream_imports(&cluster.client).await;
    let imports =
        imports.map_err(|error| cluster.failed("the kinds that the server has", &error))?;
    if !imports {
        return Ok(());
    }
    let why = "the API server has imagestreamimports, as OpenShift does, and imports by itself";
    Err(Failure::new(
        "NT-RELEASE-0005",
        Exit::Refused,
        "imports are not needed here",
        why,
    )
    .remedy("do not run this process; neap release reimport asks again for imports that failed"))
}
