//! A server with a Service that may sleep, and its operator.

use std::{fmt, net::IpAddr, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use futures::future::BoxFuture;
use k8s_openapi::{
    NamespaceResourceScope,
    api::{apps::v1::Deployment, core::v1::Service, discovery::v1::EndpointSlice},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, CustomResourceExt, Resource,
    api::{Patch, PatchParams, PostParams},
};
use neap_idle::{
    api::{
        ElastiService, Mode,
        annotations::SLEEP,
        labels::{PRIVATE, SERVICE_NAME},
        names,
    },
    elasti_service::{
        self, Settings,
        facts::{PortRange, Timeouts},
        reachability::Prover,
    },
    options::Installation,
    reason::Reason,
    trigger::{Verdict, Verdicts},
    wake::{WakeHandle, WakeRunner},
};
use neap_kit::{
    clock::Clock, context::Context, controller::Enqueuer, key::Key, lease::Leadership, manager,
    watch::Watches,
};
use neap_pocket::{Options, Pocket, environment::Environment};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    addresses::{self, SHARED},
    cell::Protocol,
};

/// The name of the Service, the Deployment and the ElastiService.
pub(crate) const WEB: &str = "web";
/// The EndpointSlices of its pods: for the public Service, and for the private one.
pub(crate) const SLICES: [&str; 2] = ["web-pods", "web-private-pods"];
pub(crate) const RESOLVER: &str = "elasti-resolver-service";
const START: &str = "2026-01-01T00:00:00Z";

/// The addresses of the Services.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Addresses {
    pub(crate) web: IpAddr,
    pub(crate) resolvers: IpAddr,
}

pub(crate) struct TestEnvironment {
    pub(crate) pocket: Pocket,
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    context: Context,
}

impl TestEnvironment {
    /// A server with the definition of ElastiServices.
    pub(crate) async fn open(seed: u64, tasks: &mut JoinSet<()>) -> Result<Self> {
        let pocket = Pocket::open(Options::new(Environment::simulated(seed))).await?;
        let client = Client::new(pocket.service(), "default");
        let clock = Clock::starting_at(START.parse()?);
        let (watches, watching) = Watches::new(clock);
        tasks.spawn(watching.run(CancellationToken::new()));
        let context = Context {
            client: client.clone(),
            watches,
            leadership: Leadership::without_election(clock),
            clock,
        };
        let environment = Self {
            pocket,
            client,
            clock,
            context,
        };
        let definitions: Api<CustomResourceDefinition> = Api::all(environment.client.clone());
        let create = PostParams::default();
        definitions.create(&create, &ElastiService::crd()).await?;
        clock.sleep(Duration::from_secs(1)).await;
        Ok(environment)
    }

    /// Creates the objects of users and of the cluster.
    pub(crate) async fn create_objects(
        &self,
        protocol: Protocol,
        resolvers: usize,
    ) -> Result<Addresses> {
        let port = protocol.port_name();
        let of = |name: &str| {
            json!({
                "metadata": {"name": name},
                "spec": {"selector": {"app": name}, "ports": [{"name": port, "port": 80, "targetPort": 8080}]},
            })
        };
        let web = self.create::<Service>(of(WEB)).await?;
        let service = self.create::<Service>(of(RESOLVER)).await?;
        let owner = json!([{
            "apiVersion": "v1", "kind": "Service", "name": RESOLVER,
            "uid": service.metadata.uid, "controller": true,
        }]);
        let there = resolver_endpoints(&vec![true; resolvers]);
        let labels = json!({SERVICE_NAME: RESOLVER});
        let metadata = json!({"name": "resolvers", "labels": labels, "ownerReferences": owner});
        let slice = json!({
            "metadata": metadata, "addressType": "IPv4", "endpoints": there,
            "ports": [{"name": "proxy", "port": SHARED, "protocol": "TCP"}],
        });
        self.create::<EndpointSlice>(slice).await?;
        let private = names::private_service(WEB);
        let labels = [
            json!({SERVICE_NAME: WEB}),
            json!({SERVICE_NAME: private, PRIVATE: "true"}),
        ];
        for (name, labels) in SLICES.into_iter().zip(labels) {
            let slice = json!({
                "metadata": {"name": name, "labels": labels},
                "addressType": "IPv4", "endpoints": [],
                "ports": [{"name": port, "port": 8080, "protocol": "TCP"}],
            });
            self.create::<EndpointSlice>(slice).await?;
        }
        let deployment = json!({
            "metadata": {"name": WEB},
            "spec": {
                "replicas": 1, "selector": {"matchLabels": {"app": WEB}},
                "template": {
                    "metadata": {"labels": {"app": WEB}},
                    "spec": {"containers": [{"name": "web", "image": "web"}]},
                },
            },
        });
        self.create::<Deployment>(deployment).await?;
        let elasti = json!({
            "metadata": {"name": WEB},
            "spec": {
                "service": WEB, "triggers": [{"type": "prometheus"}],
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": WEB},
            },
        });
        self.create::<ElastiService>(elasti).await?;
        Ok(Addresses {
            web: address(&web)?,
            resolvers: address(&service)?,
        })
    }

    /// Sets which resolvers are ready.
    pub(crate) async fn resolvers(&self, ready: &[bool]) -> Result<()> {
        let patch = json!({"endpoints": resolver_endpoints(ready)});
        self.patch::<EndpointSlice>("resolvers", patch).await
    }

    /// Starts the component that wakes services.
    pub(crate) fn start_waker(&self, tasks: &mut JoinSet<()>) -> Result<WakeHandle> {
        let (waker, wakes) = WakeRunner::for_all_services(&self.context)?;
        let wakes: manager::Component = wakes.into();
        tasks.spawn(wakes.run(CancellationToken::new()));
        Ok(waker)
    }

    /// Starts the operator.
    pub(crate) fn start_operator(
        &self,
        prover: Arc<dyn Prover>,
        tasks: &mut JoinSet<()>,
    ) -> Result<()> {
        let settings = Settings {
            installation: Installation {
                operator_namespace: "default".to_owned(),
                resolver_namespace: "default".to_owned(),
                resolver_service: RESOLVER.to_owned(),
                ..Installation::standard()
            },
            resolver_ports: PortRange::default(),
            timeouts: Timeouts::default(),
        };
        let verdicts = Arc::new(NoVerdicts);
        let operator = elasti_service::component(&self.context, settings, verdicts, prover)?;
        tasks.spawn(operator.run(CancellationToken::new()));
        Ok(())
    }

    /// Requests sleep, as a user does.
    pub(crate) async fn sleep(&self) -> Result<()> {
        let now = self.clock.now().to_string();
        let patch = json!({"metadata": {"annotations": {SLEEP: now}}});
        self.patch::<ElastiService>(WEB, patch).await
    }

    /// Writes replicas without involving the operator, as a user may.
    pub(crate) async fn scale(&self, replicas: i32) -> Result<()> {
        let patch = json!({"spec": {"replicas": replicas}});
        self.patch::<Deployment>(WEB, patch).await
    }

    /// Whether it is awake and no resolver is in the path.
    pub(crate) async fn serves(&self) -> Result<bool> {
        let api: Api<ElastiService> = Api::default_namespaced(self.client.clone());
        let status = api.get(WEB).await?.status.unwrap_or_default();
        Ok(status.mode == Some(Mode::Serve) && status.hand_off.is_none())
    }

    async fn create<K>(&self, object: Value) -> Result<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Serialize
            + DeserializeOwned
            + Clone
            + fmt::Debug,
    {
        let api: Api<K> = Api::default_namespaced(self.client.clone());
        let object = serde_json::from_value(object)?;
        Ok(api.create(&PostParams::default(), &object).await?)
    }

    async fn patch<K>(&self, name: &str, patch: Value) -> Result<()>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + DeserializeOwned
            + Clone
            + fmt::Debug,
    {
        let api: Api<K> = Api::default_namespaced(self.client.clone());
        let parameters = PatchParams::default();
        api.patch(name, &parameters, &Patch::Merge(patch)).await?;
        Ok(())
    }
}

fn address(service: &Service) -> Result<IpAddr> {
    let spec = service.spec.as_ref();
    let address = spec.and_then(|spec| spec.cluster_ip.as_deref());
    Ok(address.context("a Service has no address")?.parse()?)
}

/// The endpoints of the resolvers, with their readiness.
fn resolver_endpoints(ready: &[bool]) -> Vec<Value> {
    let each = ready.iter().enumerate().map(|(number, ready)| {
        let address = addresses::resolver(number);
        json!({"addresses": [address], "conditions": {"ready": ready}})
    });
    each.collect()
}

/// Triggers without an opinion: the service sleeps only on request.
#[derive(Debug)]
struct NoVerdicts;

impl Verdicts for NoVerdicts {
    fn latest(&self, _: &ElastiService) -> Verdict {
        Verdict::Unknown(Reason::new("Unknown", "no trigger has an opinion"))
    }

    fn poll_now<'a>(&'a self, service: &'a ElastiService) -> BoxFuture<'a, Verdict> {
        Box::pin(async { self.latest(service) })
    }

    fn enqueue_changes(&self, _: Enqueuer<Key>) {}
}
