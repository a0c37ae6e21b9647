//! The environment of the resolver: an API server, and the resolver as a separate process.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use aws_lc_rs::digest::{SHA256, digest};
use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::sleep;

use crate::{
    client::{Client, Connection},
    logged_process::LoggedProcess,
    server::Server,
    stopwatch::Stopwatch,
};

/// The namespace of all compared services.
pub(super) const NAMESPACE: &str = "bench";
/// The namespace of operator and resolver.
pub(super) const SYSTEM_NAMESPACE: &str = "elasti";
/// Their service accounts.
pub(super) const RESOLVER: &str = "elasti-resolver";
pub(super) const OPERATOR: &str = "elasti-operator-controller-manager";
const RESOLVER_SERVICE: &str = "elasti-resolver-service";
const DEFINITION: &str = include_str!("../../../../deploy/idle/kustomize/crd.yaml");
const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";
pub(super) const ELASTI: &str =
    "/apis/elasti.truefoundry.com/v1alpha1/namespaces/bench/elastiservices";
pub(super) const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/bench/endpointslices";

/// Separate addresses, so that no client has them: a resolver treats a connection from there as a
/// probe.
pub(super) const RESOLVER_HOST: Ipv4Addr = Ipv4Addr::new(127, 255, 14, 2);
pub(super) const OPERATOR_HOST: Ipv4Addr = Ipv4Addr::new(127, 255, 14, 3);
/// Not the ports that Knative's activator uses at all addresses.
const INTERNAL: u16 = 8113;
const SHARED: u16 = 8112;
pub(super) const OPERATOR_PORT: u16 = 8114;
/// The first resolver port of a service that no operator manages.
const FIRST: u16 = 21_000;

/// Time to wait for anything that must happen.
pub(super) const WAIT_TIMEOUT: Duration = Duration::from_mins(2);

/// An API server with everything that operator and resolver need.
pub(super) struct TestEnvironment {
    neap: PathBuf,
    server: Server,
    client: Client,
    tokens: TempDir,
}

/// A port of a service: its name, its number and its address at the pod.
pub(super) type Port<'a> = (&'a str, u16, SocketAddr);

impl TestEnvironment {
    pub(super) async fn start(neap: &Path) -> Result<Self> {
        let program = neap.to_owned();
        let server = tokio::task::spawn_blocking(move || Server::start_roomy(&program)).await??;
        let environment = Self {
            neap: neap.to_owned(),
            client: server.client()?,
            server,
            tokens: tempfile::tempdir()?,
        };
        let mut api = environment.connect().await?;
        for name in [NAMESPACE, SYSTEM_NAMESPACE] {
            let namespace = json!({"metadata": {"name": name}});
            create(&mut api, "/api/v1/namespaces", &namespace).await?;
        }
        define(&mut api).await?;
        for account in [RESOLVER, OPERATOR] {
            environment.create_account(&mut api, account).await?;
        }
        environment.publish_resolver_endpoints(&mut api).await?;
        Ok(environment)
    }

    pub(super) async fn connect(&self) -> Result<Connection> {
        self.client.connect().await
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn kubeconfig(&self) -> &Path {
        self.server.kubeconfig()
    }

    /// The command `neap idle ROLE`, configured as by a manifest.
    pub(super) fn role(&self, role: &str, account: &str, host: Ipv4Addr) -> Command {
        let mut command = Command::new(&self.neap);
        command.args(["idle", role]).env_clear();
        for (name, value) in ENVIRONMENT {
            command.env(name, value);
        }
        command
            .env("ELASTI_RESOLVER_PORT", INTERNAL.to_string())
            .env("ELASTI_RESOLVER_PROXY_PORT", SHARED.to_string())
            .env("ELASTI_OPERATOR_PORT", OPERATOR_PORT.to_string())
            .env("KUBECONFIG", self.kubeconfig())
            .env("ELASTI_LISTEN_ADDRESS", host.to_string())
            .env("ELASTI_TOKEN_FILE", self.token(account))
            .env("ELASTI_DRAIN_SECONDS", "1");
        command
    }

    /// A resolver that requests wakes from `operator`.
    pub(super) fn resolver(&self, operator: SocketAddr) -> Result<LoggedProcess> {
        let mut command = self.role("resolver", RESOLVER, RESOLVER_HOST);
        command.env("ELASTI_OPERATOR_ADDRESS", operator.to_string());
        LoggedProcess::start(&mut command).context("cannot run the resolver")
    }

    fn token(&self, account: &str) -> PathBuf {
        self.tokens.path().join(account)
    }

    async fn create_account(&self, api: &mut Connection, account: &str) -> Result<()> {
        let accounts = format!("/api/v1/namespaces/{SYSTEM_NAMESPACE}/serviceaccounts");
        create(api, &accounts, &json!({"metadata": {"name": account}})).await?;
        let wanted = json!({"spec": {"audiences": [], "expirationSeconds": 86_400}});
        let path = format!("{accounts}/{account}/token");
        let made = create(api, &path, &wanted).await?;
        let token = made["status"]["token"].as_str().context("no token")?;
        Ok(fs::write(self.token(account), token)?)
    }

    async fn publish_resolver_endpoints(&self, api: &mut Connection) -> Result<()> {
        let port = |name: &str, port: u16| json!({"name": name, "port": port});
        let ports = json!([
            port("http-resolver", INTERNAL),
            port("reverse-proxy", SHARED)
        ]);
        let service = json!({"metadata": {"name": RESOLVER_SERVICE}, "spec": {"ports": ports}});
        let made = create(
            api,
            &format!("/api/v1/namespaces/{SYSTEM_NAMESPACE}/services"),
            &service,
        )
        .await?;
        let owner = json!({
            "apiVersion": "v1", "kind": "Service", "name": RESOLVER_SERVICE,
            "uid": made["metadata"]["uid"], "controller": true,
        });
        let slice = json!({
            "metadata": {
                "name": RESOLVER_SERVICE, "ownerReferences": [owner],
                "labels": {"kubernetes.io/service-name": RESOLVER_SERVICE},
            },
            "addressType": "IPv4",
            "ports": ports,
            "endpoints": [{"addresses": [RESOLVER_HOST], "conditions": {"ready": true}}],
        });
        let slices =
            format!("/apis/discovery.k8s.io/v1/namespaces/{SYSTEM_NAMESPACE}/endpointslices");
        create(api, &slices, &slice).await?;
        Ok(())
    }
}

/// A sleeping service in the state that its operator would leave it in. Returns the addresses at
/// which resolvers serve its ports, from `FIRST` plus `offset` on.
pub(super) async fn create_sleeping(
    api: &mut Connection,
    name: &str,
    offset: u16,
    ports: &[Port<'_>],
) -> Result<Vec<SocketAddr>> {
    let object = json!({
        "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService",
        "metadata": {"name": name},
        "spec": {
            "service": name, "queue": {"requests": 20_000},
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        },
    });
    create(api, ELASTI, &object).await?;
    let numbered = ports.iter().zip(FIRST + offset..);
    let stands = numbered.clone().map(
        |((name, port, _), resolver)| json!({"name": name, "port": port, "resolverPort": resolver}),
    );
    let status = json!({"status": {"mode": "proxy", "ports": stands.collect::<Value>()}});
    let path = format!("{ELASTI}/{name}/status");
    patch(api, &path, &status).await?;
    create(api, SLICES, &slice(name, ports, false)).await?;
    let host = IpAddr::from(RESOLVER_HOST);
    Ok(numbered
        .map(|(_, port)| SocketAddr::new(host, port))
        .collect())
}

/// Makes its pod ready, or removes it.
pub(super) async fn set_ready(
    api: &mut Connection,
    name: &str,
    ports: &[Port<'_>],
    ready: bool,
) -> Result<()> {
    let slice = slice(name, ports, ready);
    let path = format!("{SLICES}/{}", private_service_name(name));
    let change = json!({"endpoints": slice["endpoints"]});
    patch(api, &path, &change).await.map(drop)
}

/// The EndpointSlice of the private Service.
pub(super) fn slice(name: &str, ports: &[Port<'_>], ready: bool) -> Value {
    let targets = ports
        .iter()
        .map(|(name, _, pod)| json!({"name": name, "port": pod.port()}));
    let pods: Vec<IpAddr> = ports.iter().map(|(.., pod)| pod.ip()).take(1).collect();
    let endpoint = json!({"addresses": pods, "conditions": {"ready": true}});
    json!({
        "metadata": {"name": private_service_name(name), "labels": {
            "kubernetes.io/service-name": private_service_name(name),
            "idle.neaptide.dev/private": "true",
        }},
        "addressType": "IPv4",
        "ports": targets.collect::<Value>(),
        "endpoints": if ready { json!([endpoint]) } else { json!([]) },
    })
}

/// The name of the private Service of a service.
pub(super) fn private_service_name(name: &str) -> String {
    use std::fmt::Write;
    let mut hash = String::new();
    for byte in digest(&SHA256, name.as_bytes()).as_ref().iter().take(5) {
        // Writing to a string does not fail.
        let _ = write!(hash, "{byte:02x}");
    }
    format!("elasti-{name}-pvt-{hash}")
}

pub(super) async fn create(api: &mut Connection, path: &str, object: &Value) -> Result<Value> {
    let made = api.send(Method::POST, path, object.to_string()).await?;
    made.success().with_context(|| format!("POST {path}"))
}

pub(super) async fn patch(api: &mut Connection, path: &str, change: &Value) -> Result<Value> {
    let changed = api.send_as(Method::PATCH, path, MERGE, change.to_string());
    let changed = changed.await?;
    changed.success().with_context(|| format!("PATCH {path}"))
}

/// Creates the definition, and waits until the kind is served.
async fn define(api: &mut Connection) -> Result<()> {
    let name = "elastiservices.elasti.truefoundry.com";
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
    let path = format!("{path}?fieldManager=bench&force=true");
    let made = api.send_as(Method::PATCH, &path, APPLY, DEFINITION).await?;
    made.success()?;
    wait_until_served(api, ELASTI).await
}

/// Waits until a collection is served.
pub(super) async fn wait_until_served(api: &mut Connection, collection: &str) -> Result<()> {
    let watch = Stopwatch::start();
    while api.send(Method::GET, collection, "").await?.status != 200 {
        ensure!(watch.elapsed() < WAIT_TIMEOUT, "{collection} is not served");
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

const ENVIRONMENT: [(&str, &str); 10] = [
    ("ELASTI_RESOLVER_NAMESPACE", SYSTEM_NAMESPACE),
    ("ELASTI_RESOLVER_DEPLOYMENT_NAME", RESOLVER),
    ("ELASTI_RESOLVER_SERVICE_NAME", RESOLVER_SERVICE),
    ("ELASTI_RESOLVER_SERVICE_ACCOUNT", RESOLVER),
    ("ELASTI_OPERATOR_NAMESPACE", SYSTEM_NAMESPACE),
    ("ELASTI_OPERATOR_DEPLOYMENT_NAME", OPERATOR),
    (
        "ELASTI_OPERATOR_SERVICE_NAME",
        "elasti-operator-controller-service",
    ),
    ("ELASTI_OPERATOR_SERVICE_ACCOUNT", OPERATOR),
    ("KUBERNETES_CLUSTER_DOMAIN", "cluster.local"),
    ("QUEUE_SIZE", "50000"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_private_service_is_called_as_users_know_it() {
        assert_eq!(
            private_service_name("httpbin"),
            "elasti-httpbin-pvt-abbea20e59"
        );
    }
}
