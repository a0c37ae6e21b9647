//! What is to be around the API: a small world, or nothing.

use std::{net::Ipv4Addr, path::Path, sync::Arc};

use neap_kit::clock::Clock;
use neap_pocket::{kinds::Settings, runtime::PodRuntime};

use super::{
    audit::Noted,
    block::Claim,
    folder::Folder,
    listen::Address,
    private,
    runtime::Containers,
    server::Server,
    stages::Stages,
    world::{Plan, World},
};
use crate::{
    cli::UpOptions,
    exit::{Exit, Failure},
};

/// Claimed once nothing else can be refused, and built once there is an API.
pub(super) enum Surroundings {
    /// Objects are kept, and nothing is done about them; services get addresses of this network.
    Bare((Ipv4Addr, u8)),
    /// A node and the controllers.
    World {
        plan: Box<Plan>,
        claim: Claim,
        noted: Box<Noted>,
        containers: Arc<Containers>,
    },
}

impl Surroundings {
    /// Reads what the user named, and takes addresses that nobody else has.
    pub(super) async fn claim(options: &UpOptions, folder: &Folder) -> Result<Self, Failure> {
        if options.bare {
            let range = options.service_range;
            return Ok(Self::Bare(
                range.unwrap_or(Settings::default().service_range),
            ));
        }
        let kept = options.data.as_ref().map(|_| folder.path());
        let plan = Plan::read(options)?;
        let claim = Claim::take(kept).await?;
        let noted = Noted::open(kept, Clock::system())?;
        Ok(Self::World {
            plan: Box::new(plan),
            claim,
            noted: Box::new(noted),
            containers: Arc::default(),
        })
    }

    /// Where services get their addresses.
    pub(super) fn service_range(&self) -> (Ipv4Addr, u8) {
        match self {
            Self::Bare(range) => *range,
            Self::World { claim, .. } => claim.block.services(),
        }
    }

    /// The address of the API's own service: the first of its range, by convention.
    pub(super) fn kubernetes(&self) -> Ipv4Addr {
        let (first, _) = self.service_range();
        Ipv4Addr::from(u32::from(first) + 1)
    }

    /// What runs pods; it does so once the world is built.
    pub(super) fn runtime(&self) -> Option<Arc<dyn PodRuntime>> {
        match self {
            Self::Bare(_) => None,
            Self::World { containers, .. } => Some(containers.clone()),
        }
    }

    /// The world, if there is to be one, and what the user should know of it.
    pub(super) fn build(
        self,
        server: &Server,
        address: &Address,
        folder: &Folder,
        stages: &mut Stages,
    ) -> Result<Option<World>, Failure> {
        let Self::World {
            plan,
            claim,
            noted,
            containers,
        } = self
        else {
            stages.note("the API alone: nothing runs pods or looks after objects (--bare)");
            return Ok(None);
        };
        let block = claim.block;
        let node = folder.path().join("node");
        make(&node)?;
        let world = World::build(server.client(), *plan, claim, *noted, address, &node)?;
        containers.follow(world.access.clone());
        stages.done("node", &format!("pods and services on {block}"));
        if let Some(why) = &world.cramped {
            stages.note(&format!("containers are plain processes here, without volumes at their paths or names of services: {why}"));
        }
        Ok(Some(world))
    }
}

fn make(folder: &Path) -> Result<(), Failure> {
    private::create_folder(folder).map_err(|error| {
        Failure::new(
            "NT-UP-0019",
            Exit::Refused,
            &format!("cannot make the node's folder {}", folder.display()),
            &error.to_string(),
        )
        .remedy("look at the folder's permissions and free space")
    })
}
