//! Operators and resolvers as users install them: the manifests of deploy/idle, adapted to the
//! single node of `neap up` and with short intervals.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    path::Path,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::{
    apps::v1::Deployment,
    authentication::v1::TokenRequest,
    core::v1::{Pod, ServiceAccount},
};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, PostParams},
};
use neap_idle::{http_api::ApiClient, resolver::client::ResolverClient};
use neap_kit::clock::Clock;
use serde_json::{Value, json};

use super::WAIT_TIMEOUT;

/// The image name in the manifests.
pub(super) const IMAGE: &str = "ghcr.io/neaptide/neap";
const NAMESPACE: &str = "elasti";
const OPERATOR: &str = "elasti-operator-controller-manager";
const RESOLVER: &str = "elasti-resolver";
/// The internal port of resolvers.
const INTERNAL: u16 = 8013;
const MANIFESTS: [&str; 6] = [
    include_str!("../../../../deploy/idle/kustomize/namespace.yaml"),
    include_str!("../../../../deploy/idle/kustomize/crd.yaml"),
    include_str!("../../../../deploy/idle/kustomize/rbac.yaml"),
    include_str!("../../../../deploy/idle/kustomize/places.yaml"),
    include_str!("../../../../deploy/idle/kustomize/operator.yaml"),
    include_str!("../../../../deploy/idle/kustomize/resolver.yaml"),
];

/// Ready operators and resolvers.
pub(super) struct Installed {
    resolvers: Vec<SocketAddr>,
    client: ResolverClient,
}

impl Installed {
    /// Installs them, writes a token of the operator to `folder`, and waits until all are ready.
    pub(super) async fn new(client: &Client, neap: &Path, folder: &Path) -> Result<Self> {
        for text in MANIFESTS {
            for document in text.split("\n---\n") {
                let object: Value = serde_saphyr::from_str(document)?;
                create(client, adapted(object, neap)).await?;
            }
        }
        let clock = Clock::system();
        for name in [OPERATOR, RESOLVER] {
            let ready = clock
                .within(WAIT_TIMEOUT, all_ready(client, name, clock))
                .await;
            ready.with_context(|| format!("{name} is never ready"))??;
        }
        let token = folder.join("token");
        std::fs::write(&token, own_token(client).await?)?;
        Ok(Self {
            resolvers: resolvers(client).await?,
            client: ResolverClient::new(ApiClient::new(clock, Some(token))),
        })
    }

    /// The number of requests, or raw TCP connections, that resolvers accepted for each service.
    pub(super) async fn accepted_requests(&self) -> Result<BTreeMap<String, u64>> {
        let mut all = BTreeMap::new();
        for resolver in &self.resolvers {
            let activity = self.client.activity(*resolver).await?;
            for (service, asked) in activity.services {
                *all.entry(service).or_insert(0) += asked.requests;
            }
        }
        Ok(all)
    }
}

/// The changes that a user would make in an overlay.
fn adapted(mut object: Value, neap: &Path) -> Value {
    let containers = object.pointer_mut("/spec/template/spec/containers");
    for container in containers
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        // The program is at another path here.
        container["command"][0] = json!(neap);
        // All pods share the machine's network, and each has its own address.
        let own = json!({"fieldRef": {"fieldPath": "status.podIP"}});
        let own = json!({"name": "ELASTI_LISTEN_ADDRESS", "valueFrom": own});
        // The data plane is one process, so once a change is observed, it has taken effect
        // everywhere.
        let grace = json!({"name": "ELASTI_GRACE_SECONDS", "value": "1"});
        if let Some(variables) = container["env"].as_array_mut() {
            variables.extend([own, grace]);
        }
        container["readinessProbe"]["initialDelaySeconds"] = json!(0);
        container["readinessProbe"]["periodSeconds"] = json!(1);
        // A machine that is short of CPU delays probes as well; no container is restarted for that.
        for probe in ["readinessProbe", "livenessProbe"] {
            container[probe]["timeoutSeconds"] = json!(10);
            container[probe]["failureThreshold"] = json!(10);
        }
    }
    object
}

async fn create(client: &Client, object: Value) -> Result<()> {
    let object: DynamicObject = serde_json::from_value(object)?;
    let types = object.types.as_ref().context("a manifest without a kind")?;
    let kind = ApiResource::from_gvk(&GroupVersionKind::try_from(types)?);
    let anywhere = [
        "Namespace",
        "CustomResourceDefinition",
        "ClusterRole",
        "ClusterRoleBinding",
    ];
    let api: Api<DynamicObject> = if anywhere.contains(&&*types.kind) {
        Api::all_with(client.clone(), &kind)
    } else {
        Api::namespaced_with(client.clone(), NAMESPACE, &kind)
    };
    let made = api.create(&PostParams::default(), &object).await;
    made.with_context(|| format!("cannot make {} {:?}", types.kind, object.metadata.name))?;
    Ok(())
}

async fn all_ready(client: &Client, name: &str, clock: Clock) -> Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
    loop {
        let found = deployments.get(name).await?;
        let wanted = found.spec.and_then(|spec| spec.replicas);
        let ready = found.status.and_then(|status| status.ready_replicas);
        if wanted.is_some() && ready == wanted {
            return Ok(());
        }
        clock.sleep(Duration::from_millis(100)).await;
    }
}

async fn own_token(client: &Client) -> Result<String> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
    let wanted = json!({"spec": {"audiences": [], "expirationSeconds": 86_400}});
    let wanted: TokenRequest = serde_json::from_value(wanted)?;
    let made = accounts
        .create_token_request(OPERATOR, &PostParams::default(), &wanted)
        .await?;
    let made = made.status.and_then(|status| status.token);
    made.context("the server made no token")
}

async fn resolvers(client: &Client) -> Result<Vec<SocketAddr>> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let chosen = ListParams::default().labels(&format!("app={RESOLVER}"));
    let found = pods.list(&chosen).await?;
    let addresses = found.into_iter().filter_map(|pod| pod.status?.pod_ip);
    let addresses = addresses.map(|address| {
        let address: IpAddr = address.parse()?;
        anyhow::Ok(SocketAddr::new(address, INTERNAL))
    });
    let addresses: Vec<_> = addresses.collect::<Result<_>>()?;
    if addresses.is_empty() {
        bail!("no resolver has an address");
    }
    Ok(addresses)
}
