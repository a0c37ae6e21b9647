//! Puts the process of a role together: leader election, watches, audit, listener, and the components of an
//! area. Every `neap <area> <role>` is one of these, so all of them start, report and stop alike.

use std::{fmt, io, net::SocketAddr, time::Duration};

use kube::Client;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    apply::Writer,
    audit::{self, Anchor, AnchorOptions, Audit, AuditWriter},
    clock::Clock,
    context::Context,
    lease::{self, ElectionOptions, Elector, Leadership, LeaseTimings},
    manager::{self, Component, ComponentStarter, Health, Manager},
    process::Process,
    watch::{WatchRunner, Watches, WatchesStopped},
    why::{Code, Coded},
};

/// The clients of a process.
#[derive(Clone)]
pub struct ProcessClients {
    /// For everything but the election; its calls are counted in `process`.
    pub client: Client,
    /// For the election: it does not retry by itself, because a late answer is of no use there.
    pub election: Client,
    /// The telemetry and the debug state.
    pub process: Process,
}

/// What distinguishes one process of a role from the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// A unique name, different also from that of its predecessors in the same pod.
    pub name: String,
    /// A random number.
    pub seed: u64,
}

/// How the process of a role is put together.
#[derive(Debug, Clone)]
pub struct RoleOptions {
    /// The name of the role, which is also that of its Lease: `neap-release-controller`.
    pub name: &'static str,
    /// The namespace of the Lease, in which the process runs.
    pub namespace: String,
    /// Whether several processes elect a leader, which alone writes. Without it there must be one process.
    pub elect: bool,
    /// The namespaces that are watched; empty for all.
    pub namespaces: Vec<String>,
    /// Where `/healthz`, `/readyz`, `/metrics` and `/debug/state.json` are served; none for nowhere.
    pub listen: Option<SocketAddr>,
    /// The file in which every write is recorded, and its anchor; none for no audit.
    pub audit: Option<AnchorOptions>,
    /// How long the components may take to stop.
    pub grace: Duration,
}

impl RoleOptions {
    /// A role that elects a leader in `namespace`, and serves its health on port 8080 of all addresses.
    pub fn new(name: &'static str, namespace: impl Into<String>) -> Self {
        Self {
            name,
            namespace: namespace.into(),
            elect: true,
            namespaces: Vec::new(),
            listen: Some(SocketAddr::from(([0, 0, 0, 0], 8080))),
            audit: None,
            grace: Duration::from_secs(25),
        }
    }
}

/// Why a process could not start or continue.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is in use or does not exist.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The options of the election are invalid.
    #[error(transparent)]
    Election(#[from] lease::Error),
    /// The audit cannot be continued.
    #[error(transparent)]
    Audit(#[from] audit::Error),
    /// No more watches can be requested.
    #[error(transparent)]
    Watches(#[from] WatchesStopped),
    /// A component ended or has the name of another.
    #[error(transparent)]
    Component(#[from] manager::Error),
}

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Listen { .. } => Code("NT-KIT-041"),
            Self::Election(error) => error.code(),
            Self::Audit(error) => error.code(),
            Self::Watches(_) => Code("NT-KIT-007"),
            Self::Component(error) => error.code(),
        }
    }
}

/// A process under construction: what every role has is there, and the area adds its components.
#[derive(Debug)]
pub struct Assembly {
    context: Context,
    manager: Manager,
    runner: WatchRunner,
}

impl Assembly {
    /// The parts that every role has. Nothing runs before [`Self::run`], but the address is bound.
    pub async fn new(
        clients: ProcessClients,
        options: RoleOptions,
        identity: Identity,
        clock: Clock,
    ) -> Result<Self, Error> {
        let ProcessClients {
            client,
            election,
            mut process,
        } = clients;
        let mut audit: Option<(Audit, AuditWriter, AnchorOptions)> = None;
        if let Some(anchor) = options.audit {
            let (log, writer) = Audit::open(&anchor.path, clock)?;
            process = process.with_write_observer(std::sync::Arc::new(log.clone()));
            audit = Some((log, writer, anchor));
        }
        let (watches, runner) = Watches::in_process(clock, process);
        let (elector, leadership) = if options.elect {
            let election_options = ElectionOptions {
                namespace: options.namespace.clone(),
                name: options.name.to_owned(),
                identity: identity.name,
                timings: LeaseTimings::default(),
            };
            let (elector, leadership) = Elector::new(election, election_options, clock)?;
            let telemetry = watches.process().telemetry().clone();
            (Some(elector.with_telemetry(telemetry)), leadership)
        } else {
            (None, Leadership::without_election(clock))
        };
        let context = Context {
            client,
            watches: watches.in_namespaces(options.namespaces),
            leadership,
            clock,
        };
        let mut manager = Manager::new(&context).with_grace(options.grace);
        if let Some(address) = options.listen {
            let listening = TcpListener::bind(address).await;
            let socket = listening.map_err(|source| Error::Listen { address, source })?;
            manager.add(manager::listener(socket, manager.health()));
        }
        if let Some(elector) = elector {
            manager.add(elector);
        }
        if let Some((log, writer_component, anchor)) = audit {
            let writer = Writer::new(
                context.client.clone(),
                options.name,
                context.leadership.clone(),
                clock,
            );
            manager.add(Anchor::new(log, writer, anchor, clock));
            manager.add(writer_component);
        }
        Ok(Self {
            context,
            manager,
            runner,
        })
    }

    /// The client, watches, leadership and clock for the controllers of the area.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The health of the process.
    pub fn health(&self) -> Health {
        self.manager.health()
    }

    /// Adds components while the others run.
    pub fn starter(&self) -> ComponentStarter {
        self.manager.starter()
    }

    /// Adds components.
    pub fn add(&mut self, components: impl IntoIterator<Item = Component>) {
        for component in components {
            self.manager.add(component);
        }
    }

    /// Runs until `stop`, or until a component fails.
    pub async fn run(mut self, stop: CancellationToken) -> Result<(), Error> {
        // The watches depend on nothing, and everything else may depend on them.
        self.manager.add(self.runner);
        Ok(self.manager.run(stop).await?)
    }
}

impl fmt::Debug for ProcessClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessClients")
            .field("process", &self.process)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{coordination::v1::Lease, core::v1::ConfigMap};
    use kube::Api;

    use super::*;
    use crate::{builder::ControllerBuilder, controller::Outcome, key::Key, server::Server};

    fn clients(server: &Server) -> ProcessClients {
        ProcessClients {
            client: server.client.clone(),
            election: server.client.clone(),
            process: Process::default(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_role_elects_a_leader_runs_its_controllers_and_releases_its_lease() {
        let server = Server::open().await;
        let clock = Clock::system();
        let options = RoleOptions {
            listen: None,
            ..RoleOptions::new("neap-shop-controller", server.namespace())
        };
        let identity = Identity {
            name: "shop-1".to_owned(),
            seed: 7,
        };
        let assembly = Assembly::new(clients(&server), options, identity, clock);
        let mut assembly = assembly.await.unwrap();
        let context = assembly.context().clone();
        let mut builder = ControllerBuilder::new(&context, "shop-marker");
        let maps = builder.primary::<ConfigMap>().unwrap();
        let tools = builder.tools();
        let reconcile = |state: std::sync::Arc<_>, key: Key| async move {
            mark(&state, &key).await?;
            Ok::<_, crate::apply::Error>(Outcome::Done)
        };
        assembly.add([builder.build((maps, tools), reconcile)]);
        let (stop, health) = (CancellationToken::new(), assembly.health());
        let leases: Api<Lease> = Api::default_namespaced(server.client.clone());
        let script = async {
            let api: Api<ConfigMap> = Api::default_namespaced(server.client.clone());
            let map = serde_json::json!({"metadata": {"name": "cart"}});
            let map = serde_json::from_value(map).unwrap();
            api.create(&kube::api::PostParams::default(), &map)
                .await
                .unwrap();
            while api.get("cart").await.unwrap().data.is_none() {
                clock.sleep(Duration::from_millis(50)).await;
            }
            assert_eq!(health.not_ready(), [""; 0]);
            let lease = leases.get("neap-shop-controller").await.unwrap();
            assert_eq!(
                lease.spec.unwrap().holder_identity.as_deref(),
                Some("shop-1")
            );
            stop.cancel();
        };
        let (ended, ()) = tokio::join!(assembly.run(stop.clone()), script);
        ended.unwrap();
        let lease = leases.get("neap-shop-controller").await.unwrap();
        let holder = lease.spec.and_then(|spec| spec.holder_identity);
        assert_eq!(holder.unwrap_or_default(), "", "the next one leads at once");
    }

    async fn mark(
        state: &(crate::watch::Cache<ConfigMap>, crate::builder::Tools),
        key: &Key,
    ) -> Result<(), crate::apply::Error> {
        let (maps, tools) = state;
        if let Some(map) = maps
            .get(key)
            .filter(|map| map.data.is_none() && key.name() == "cart")
        {
            let mut marked = ConfigMap::clone(&map);
            marked.data = Some([("seen".to_owned(), "yes".to_owned())].into());
            tools.writer.replace(&marked).await?;
        }
        Ok(())
    }

    #[tokio::test]
    async fn an_address_that_is_in_use_is_refused_before_anything_runs() {
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = taken.local_addr().unwrap();
        let clock = Clock::system();
        let options = RoleOptions {
            listen: Some(address),
            ..RoleOptions::new("neap-shop-controller", "shop")
        };
        let client = crate::server::unresponsive_client();
        let clients = ProcessClients {
            client: client.clone(),
            election: client,
            process: Process::default(),
        };
        let identity = Identity {
            name: "shop-1".to_owned(),
            seed: 7,
        };
        let refused = Assembly::new(clients, options, identity, clock).await;
        let refused = refused.err().unwrap();
        assert_eq!(refused.to_string(), format!("cannot listen on {address}"));
    }
}
