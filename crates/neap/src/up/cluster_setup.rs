//! What runs beside the API server: a node and the controllers, or nothing.

use std::{net::Ipv4Addr, path::Path, sync::Arc};

use neap_kit::clock::Clock;
use neap_pocket::{kinds::Settings, runtime::PodRuntime};

use super::{
    address_block::BlockClaim,
    audit::AuditedProcess,
    folder::Folder,
    identity::Identity,
    listen::Address,
    private,
    runtime::NodeRuntime,
    server::Server,
    transcript::Transcript,
    world::{World, WorldEnvironment, WorldOptions},
};
use crate::{
    cli::UpOptions,
    exit::{Exit, Failure},
};

/// Claimed after all other input was validated, and built once the API server is open.
pub(super) enum ClusterSetup<'a> {
    /// The API server only; services get addresses of this network.
    Bare((Ipv4Addr, u8)),
    /// A node and the controllers.
    World {
        options: Box<WorldOptions<'a>>,
        claim: BlockClaim,
        audited: Box<AuditedProcess>,
        containers: Arc<NodeRuntime>,
    },
}

impl<'a> ClusterSetup<'a> {
    /// Reads the files of the command line and claims an address block.
    pub(super) async fn claim(options: &'a UpOptions, folder: &Folder) -> Result<Self, Failure> {
        if options.bare {
            let range = options.service_range;
            return Ok(Self::Bare(
                range.unwrap_or(Settings::default().service_range),
            ));
        }
        let stored = options.data.as_ref().map(|_| folder.path());
        let world = WorldOptions::read(options)?;
        let claim = BlockClaim::acquire(stored).await?;
        let audited = AuditedProcess::open(stored, Clock::system())?;
        Ok(Self::World {
            options: Box::new(world),
            claim,
            audited: Box::new(audited),
            containers: Arc::default(),
        })
    }

    /// The network of the cluster IPs: first address and prefix length.
    pub(super) fn service_range(&self) -> (Ipv4Addr, u8) {
        match self {
            Self::Bare(range) => *range,
            Self::World { claim, .. } => claim.block.services(),
        }
    }

    /// The cluster IP of the Service `kubernetes`: by convention the first usable address.
    pub(super) fn kubernetes_service_ip(&self) -> Ipv4Addr {
        let (first, _) = self.service_range();
        Ipv4Addr::from(u32::from(first) + 1)
    }

    /// Gives the API server access to containers, once the node is built.
    pub(super) fn runtime(&self) -> Option<Arc<dyn PodRuntime>> {
        match self {
            Self::Bare(_) => None,
            Self::World { containers, .. } => Some(containers.clone()),
        }
    }

    /// Builds node and controllers, if there are any, and prints notes about them.
    pub(super) fn build(
        self,
        server: &Server,
        address: &Address,
        identity: &Identity,
        folder: &Folder,
        transcript: &mut Transcript,
    ) -> Result<Option<World>, Failure> {
        let Self::World {
            options,
            claim,
            audited,
            containers,
        } = self
        else {
            transcript.note("API server only: no node runs pods, and no controllers run (--bare)");
            return Ok(None);
        };
        let block = claim.block;
        let node = folder.path().join("node");
        create(&node)?;
        let environment = WorldEnvironment {
            address,
            folder: &node,
            token: identity.token(),
        };
        let world = World::build(server.client(), *options, claim, *audited, &environment)?;
        containers.set_node(world.access.clone());
        transcript.done("node", &format!("pods and services on {block}"));
        for (title, text) in &world.announcements {
            transcript.done(title, text);
        }
        if let Some(why) = &world.isolation_refused {
            transcript.note(&format!("containers run as plain processes, without volumes at their mount paths and without service names: {why}"));
        }
        Ok(Some(world))
    }
}

fn create(folder: &Path) -> Result<(), Failure> {
    private::create_folder(folder).map_err(|error| {
        Failure::new(
            "NT-UP-0019",
            Exit::Refused,
            &format!("cannot create the node folder {}", folder.display()),
            &error.to_string(),
        )
        .remedy("check the permissions and the free space of the folder")
    })
}
