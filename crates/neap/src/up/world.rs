//! The node and the controllers of `neap up`.
//!
//! They use the API as any client does, but in process, without a socket.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use kube::Client;
use neap_kit::{
    clock::Clock,
    context::Context,
    lease::Leadership,
    manager::{self, Component, Manager},
    reload::InvalidConfiguration,
    watch::{Watches, WatchesStopped},
};
use neap_world::{
    node::{
        self, Access,
        address::Block,
        image::{ImageTable, Images},
        register::Machine,
    },
    proxy,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    address_block::BlockClaim, audit::AuditedProcess, limits::ConnectionLimits, listen::Address,
};
use crate::{
    areas::{self, AreasUpOptions, Host, HostEnvironment, HostedParts},
    cli::UpOptions,
    exit::{Exit, Failure, chain},
    version,
};

/// The name of the node.
const NODE_NAME: &str = "neap";
/// Bounds the time that pods get to stop when `neap up` stops.
const POD_STOP_GRACE: Duration = Duration::from_secs(8);

/// The configuration of node and controllers.
pub(super) struct WorldOptions<'a> {
    images: ImageTable,
    /// Reads the image table again, if it is a file.
    image_reader: Option<Component>,
    launcher: PathBuf,
    lag: Duration,
    areas: &'a AreasUpOptions,
    restricted: bool,
}

impl<'a> WorldOptions<'a> {
    /// Reads the image table and finds the launcher.
    pub(super) fn read(options: &'a UpOptions) -> Result<Self, Failure> {
        let launcher = std::env::current_exe().map_err(|error| {
            Failure::new(
                "NT-UP-0021",
                Exit::Failed,
                "cannot find the executable of neap, which starts containers",
                &error.to_string(),
            )
            .remedy("start neap by its full path, or run only the API server: neap up --bare")
        })?;
        let builtin = Images::builtin(&launcher);
        let (images, image_reader) = match &options.images {
            None => (builtin.into(), None),
            Some(file) => {
                let table = ImageTable::file(file, builtin, Clock::system());
                let (images, reader) = table.map_err(|error| unusable_images(file, &error))?;
                (images, Some(reader))
            }
        };
        Ok(Self {
            images,
            image_reader,
            launcher,
            lag: options.service_lag,
            areas: &options.areas,
            restricted: options.restricted,
        })
    }
}

/// Where node and controllers run.
pub(super) struct WorldEnvironment<'a> {
    /// The address of the API server.
    pub(super) address: &'a Address,
    /// The folder of the node.
    pub(super) folder: &'a Path,
    /// The token for the debug state.
    pub(super) token: &'a str,
}

/// Node and controllers, ready to run.
pub(super) struct World {
    manager: Manager,
    /// Access to the containers of the node.
    pub(super) access: Access,
    /// Empty when everything has happened that has to happen before `neap up` is ready.
    pub(super) gates: TaskTracker,
    /// What areas say about themselves: a title and a text.
    pub(super) announcements: Vec<(&'static str, String)>,
    /// Why containers have no namespaces of their own, if they have none.
    pub(super) isolation_refused: Option<String>,
}

impl World {
    /// Builds node and controllers.
    pub(super) fn build(
        client: Client,
        options: WorldOptions<'_>,
        claim: BlockClaim,
        audited: AuditedProcess,
        environment: &WorldEnvironment<'_>,
    ) -> Result<Self, Failure> {
        let WorldEnvironment {
            address,
            folder,
            token,
        } = *environment;
        let (isolation_refused, own_proc) = probe_isolation(&options.launcher, folder);
        let as_root = isolation_refused.is_none()
            && !options.restricted
            && node::namespace_support::as_root(&options.launcher, folder).is_ok();
        let BlockClaim { block, socket } = claim;
        let node_options = node::NodeOptions {
            name: NODE_NAME.to_owned(),
            folder: folder.to_owned(),
            launcher: options.launcher,
            images: options.images,
            block,
            environment: api_variables(address),
            namespaces: isolation_refused.is_none(),
            own_proc,
            as_root,
            restricted: options.restricted,
        };
        let clock = Clock::system();
        let (watches, watching) = Watches::in_process(clock, audited.process.clone());
        let context = Context {
            client: client.clone(),
            watches,
            leadership: Leadership::without_election(clock),
            clock,
        };
        let mut manager = Manager::new(&context).with_grace(POD_STOP_GRACE);
        let proxy = proxy::ProxyOptions {
            nodes: vec![IpAddr::V4(block.node())],
            lag: options.lag,
            api: Some(address.host_and_port()),
            max_connections: Some(ConnectionLimits::of_process().proxy),
        };
        // Fails only if the watches have stopped, and they have not started yet.
        let (components, access) = components(&context, node_options, proxy)
            .map_err(|error| failed(&error.to_string()))?;
        for component in components.into_iter().chain(options.image_reader) {
            manager.add(component);
        }
        let hosted = host_areas(&context, &manager, block, environment, options.areas)?;
        for component in hosted.components {
            manager.add(component);
        }
        manager.add(watching);
        audited.add_to(&mut manager, client, clock);
        let health = manager.health().with_debug_token(token);
        manager.add(manager::listener(socket, health));
        Ok(Self {
            manager,
            access,
            gates: hosted.gates,
            announcements: hosted.announcements,
            isolation_refused,
        })
    }

    /// Runs until `stop`; an error names the component that failed.
    pub(super) async fn run(self, stop: CancellationToken) -> Result<(), Failure> {
        let result = self.manager.run(stop).await;
        result.map_err(|error| failed(&error.to_string()))
    }
}

fn unusable_images(file: &Path, error: &InvalidConfiguration) -> Failure {
    let what = "cannot use the image table";
    let exit = if file.exists() {
        Exit::Refused
    } else {
        Exit::NotFound
    };
    Failure::new("NT-UP-0022", exit, what, &chain(error))
        .remedy("correct the file; docs/platform/node.md has an example")
}

/// What areas add to the manager.
fn host_areas(
    context: &Context,
    manager: &Manager,
    block: Block,
    environment: &WorldEnvironment<'_>,
    options: &AreasUpOptions,
) -> Result<HostedParts, Failure> {
    let (health, api_url) = (manager.health(), environment.address.url());
    let starter = manager.starter();
    let mut host = Host::new(HostEnvironment {
        context,
        health: &health,
        block,
        folder: environment.folder,
        api_url: &api_url,
        starter: &starter,
    });
    areas::host(&mut host, options)?;
    Ok(host.into_parts())
}

/// Probes the isolation of containers: why they have no namespaces of their own, if they have none, and
/// whether they have their own `/proc`.
fn probe_isolation(launcher: &Path, folder: &Path) -> (Option<String>, bool) {
    let Err(why) = node::namespace_support::own_proc(launcher, folder) else {
        return (None, true);
    };
    let refused = node::namespace_support::namespaces(launcher, folder).err();
    if refused.is_none() {
        tracing::warn!(why, "containers see all processes of the machine in /proc");
    }
    (refused, false)
}

fn components(
    context: &Context,
    node: node::NodeOptions,
    proxy: proxy::ProxyOptions,
) -> Result<(Vec<Component>, Access), WatchesStopped> {
    let machine = Machine::this(&node.folder, version::KUBERNETES);
    let mut components = neap_world::components(context, &node.folder.join("volumes"))?;
    components.push(node::register::component(context, &node, &machine)?);
    let (pods, access) = node::component_with_access(context, node)?;
    components.push(pods);
    components.push(proxy::component(context, proxy)?);
    Ok((components, access))
}

/// The variables by which clients in pods find the API server. They do not use the Service
/// `kubernetes`, whose port 443 needs privileges.
fn api_variables(address: &Address) -> BTreeMap<String, String> {
    let (host, port) = (address.client_host(), address.port().to_string());
    let named = [
        ("KUBERNETES_SERVICE_HOST", host),
        ("KUBERNETES_SERVICE_PORT", port.clone()),
        ("KUBERNETES_SERVICE_PORT_HTTPS", port),
    ];
    named.map(|(name, value)| (name.to_owned(), value)).into()
}

fn failed(why: &str) -> Failure {
    Failure::new(
        "NT-UP-0018",
        Exit::Failed,
        "the node or a controller failed",
        why,
    )
    .remedy("start it again; -vv logs details")
}
