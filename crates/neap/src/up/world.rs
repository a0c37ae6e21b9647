//! The small world around the API of `neap up`: a node that runs pods, and the controllers.
//!
//! All of it works through the API as any client would; it only saves itself the socket.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use kube::Client;
use neap_kit::{
    clock::Clock,
    lease::Leadership,
    manager::{self, Manager, Service},
    site::Site,
    watch::{Ended, Watches},
};
use neap_world::{
    node::{self, Access, image::Images, register::Machine},
    proxy,
};
use tokio_util::sync::CancellationToken;

use super::{audit::Noted, block::Claim, idle, listen::Address, private};
use crate::{
    cli::UpOptions,
    exit::{Exit, Failure, chain},
    version,
};

/// What the one node is called.
const NODE: &str = "neap";
/// How long pods have to end when everything does.
const GRACE: Duration = Duration::from_secs(8);

/// What the world is made of.
pub(super) struct Plan {
    images: Images,
    launcher: PathBuf,
    lag: Duration,
    without_idle: bool,
}

impl Plan {
    /// Reads what the user named.
    pub(super) fn read(options: &UpOptions) -> Result<Self, Failure> {
        let launcher = std::env::current_exe().map_err(|error| {
            Failure::new(
                "NT-UP-0021",
                Exit::Failed,
                "cannot find the program neap itself, which starts containers",
                &error.to_string(),
            )
            .remedy("start neap by its full path, or run the API alone: neap up --bare")
        })?;
        let mut images = Images::usual(&launcher);
        if let Some(file) = &options.images {
            images = images.with_file(file).map_err(|error| {
                Failure::new(
                    "NT-UP-0022",
                    Exit::Refused,
                    "the image table cannot be used",
                    &chain(&error),
                )
                .remedy("correct the file; docs/node.md shows one")
            })?;
        }
        Ok(Self {
            images,
            launcher,
            lag: options.service_lag,
            without_idle: options.without_idle,
        })
    }
}

/// The world, ready to turn.
pub(super) struct World {
    manager: Manager,
    /// The way to its containers.
    pub(super) access: Access,
    /// Why containers have no rooms of their own, if they have none.
    pub(super) cramped: Option<String>,
}

impl World {
    /// Everything that a cluster has beside its API, with the node's files in `folder`.
    pub(super) fn build(
        client: Client,
        plan: Plan,
        claim: Claim,
        noted: Noted,
        address: &Address,
        folder: &Path,
    ) -> Result<Self, Failure> {
        let (cramped, own_proc) = rooms(&plan.launcher, folder);
        let as_root = cramped.is_none() && node::trial::as_root(&plan.launcher, folder).is_ok();
        let Claim { block, socket } = claim;
        let options = node::Options {
            name: NODE.to_owned(),
            folder: folder.to_owned(),
            launcher: plan.launcher,
            images: plan.images,
            block,
            environment: whereabouts(address),
            rooms: cramped.is_none(),
            own_proc,
            as_root,
        };
        let clock = Clock::system();
        let (watches, watching) = Watches::in_process(clock, noted.process.clone());
        let site = Site {
            client: client.clone(),
            watches,
            leadership: Leadership::alone(clock),
            clock,
        };
        let mut manager = Manager::new(&site).with_grace(GRACE);
        let proxy = proxy::Options {
            nodes: vec![IpAddr::V4(block.node())],
            lag: plan.lag,
            api: Some(address.host_and_port()),
        };
        // None of them can have ended: they have not begun.
        let (services, access) =
            services(&site, options, proxy).map_err(|error| ended(&error.to_string()))?;
        for service in services {
            manager.add(service);
        }
        if !plan.without_idle {
            let tokens = folder.join("idle");
            private::create_folder(&tokens).map_err(|error| ended(&error.to_string()))?;
            for service in idle::services(&site, block, &tokens, manager.health())? {
                manager.add(service);
            }
        }
        manager.add(watching);
        noted.run_by(&mut manager, client, clock);
        manager.add(manager::listener(socket, manager.health()));
        Ok(Self {
            manager,
            access,
            cramped,
        })
    }

    /// Turns until `stop`; an error says what could not go on.
    pub(super) async fn run(self, stop: CancellationToken) -> Result<(), Failure> {
        let ended_by = self.manager.run(stop).await;
        ended_by.map_err(|error| ended(&error.to_string()))
    }
}

/// Why containers have no rooms of their own, if they have none; and whether `/proc` is one of those
/// that they have.
fn rooms(launcher: &Path, folder: &Path) -> (Option<String>, bool) {
    let Err(why) = node::trial::own_proc(launcher, folder) else {
        return (None, true);
    };
    let cramped = node::trial::rooms(launcher, folder).err();
    if cramped.is_none() {
        tracing::warn!(why, "containers see all processes of this machine in /proc");
    }
    (cramped, false)
}

fn services(
    site: &Site,
    node: node::Options,
    proxy: proxy::Options,
) -> Result<(Vec<Service>, Access), Ended> {
    let machine = Machine::this(&node.folder, version::KUBERNETES);
    let mut services = neap_world::services(site, &node.folder.join("volumes"))?;
    services.push(node::register::service(site, &node, &machine)?);
    let (pods, access) = node::open(site, node)?;
    services.push(pods);
    services.push(proxy::service(site, proxy)?);
    Ok((services, access))
}

/// How clients in pods find the API. Not by its service, whose port only root may listen on.
fn whereabouts(address: &Address) -> BTreeMap<String, String> {
    let (host, port) = (address.client_host(), address.port().to_string());
    let named = [
        ("KUBERNETES_SERVICE_HOST", host),
        ("KUBERNETES_SERVICE_PORT", port.clone()),
        ("KUBERNETES_SERVICE_PORT_HTTPS", port),
    ];
    named.map(|(name, value)| (name.to_owned(), value)).into()
}

fn ended(why: &str) -> Failure {
    Failure::new(
        "NT-UP-0018",
        Exit::Failed,
        "the node or a controller cannot go on",
        why,
    )
    .remedy("start it again; with -vv the log says more")
}
