//! Held requests of a resolver that gets SIGTERM or SIGKILL.

use std::{
    collections::BTreeMap,
    fs,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::Arc,
};

use k8s_openapi::api::{
    apps::v1::Deployment,
    authentication::v1::TokenRequest,
    core::v1::{Service, ServiceAccount},
    discovery::v1::EndpointSlice,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ListParams, PostParams},
};
use neap_idle::api::ElastiService;
use parking_lot::Mutex;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::{
    idle_server::IdleServer,
    processes::{ChildProcess, address, get, prepare, probed, start, until},
};

/// The number of held requests.
const HELD: usize = 50;
const ACCOUNTS: [(&str, &str); 2] = [
    ("operator", "elasti-operator-controller-manager"),
    ("resolver", "elasti-resolver"),
];
const INTERNAL: u64 = 8013;

/// A service that sleeps, with an operator process and two resolver processes.
struct IdleCluster {
    server: IdleServer,
    client: Client,
    /// The addresses of the resolvers.
    hosts: [String; 2],
    resolvers: [Option<ChildProcess>; 2],
    /// The port on which the resolvers serve the service.
    port: u64,
    _operator: ChildProcess,
    _tokens: TempDir,
}

/// Requests that the pod received, by path.
type RequestCounts = Arc<Mutex<BTreeMap<String, u32>>>;
type HeldResponses = JoinSet<Option<(u16, String)>>;

async fn make<K>(client: &Client, namespace: &str, object: Value) -> K
where
    K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
        + Serialize
        + DeserializeOwned
        + Clone
        + std::fmt::Debug,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    let object = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap()
}

/// Creates a service account and writes its token to a file.
async fn create_account(client: &Client, role: &str, account: &str, tokens: &TempDir) -> PathBuf {
    let named = json!({"metadata": {"name": account}});
    make::<ServiceAccount>(client, "elasti", named).await;
    let wanted = json!({"spec": {"audiences": [], "expirationSeconds": 3600}});
    let wanted: TokenRequest = serde_json::from_value(wanted).unwrap();
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "elasti");
    let create = PostParams::default();
    let made = accounts.create_token_request(account, &create, &wanted);
    let token = made.await.unwrap().status.unwrap().token.unwrap();
    let file = tokens.path().join(role);
    fs::write(&file, token).unwrap();
    file
}

/// Creates the Service of the resolvers and its EndpointSlice, which a cluster would maintain.
async fn publish_resolvers(client: &Client, hosts: &[String]) {
    let ports = json!([
        {"name": "http-resolver", "port": 8013},
        {"name": "http-resolver-reverse-proxy", "port": 8012},
    ]);
    let name = "elasti-resolver-service";
    let service = json!({"metadata": {"name": name}, "spec": {"ports": ports}});
    let service: Service = make(client, "elasti", service).await;
    let owner = service.controller_owner_ref(&()).unwrap();
    let ready = json!({"ready": true});
    let endpoint = |host| json!({"addresses": [host], "conditions": ready});
    let endpoints: Vec<_> = hosts.iter().map(endpoint).collect();
    let labels = json!({"kubernetes.io/service-name": name});
    let slice = json!({
        "metadata": {"name": name, "labels": labels, "ownerReferences": [owner]},
        "addressType": "IPv4", "ports": ports, "endpoints": endpoints,
    });
    make::<EndpointSlice>(client, "elasti", slice).await;
}

/// Creates a service whose target has no replicas.
async fn make_service(client: &Client) {
    let labels = json!({"app": "web"});
    let ports = json!([{"name": "http", "port": 8080}]);
    let spec = json!({"selector": labels, "ports": ports});
    let service = json!({"metadata": {"name": "web"}, "spec": spec});
    make::<Service>(client, "default", service).await;
    let container = json!({"name": "web", "image": "web"});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [container]}});
    let selector = json!({"matchLabels": labels});
    let spec = json!({"replicas": 0, "selector": selector, "template": template});
    let deployment = json!({"metadata": {"name": "web"}, "spec": spec});
    make::<Deployment>(client, "default", deployment).await;
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let spec = json!({"service": "web", "scaleTargetRef": target});
    let elasti = json!({"metadata": {"name": "web"}, "spec": spec});
    make::<ElastiService>(client, "default", elasti).await;
}

impl IdleCluster {
    /// Starts everything; `drain` is the drain time of the resolvers in seconds.
    async fn new(drain: u32) -> Self {
        let server = IdleServer::bare();
        let client = server.client().await;
        prepare(client.clone()).await;
        let tokens = tempfile::tempdir().unwrap();
        let mut files = BTreeMap::new();
        for (role, account) in ACCOUNTS {
            let file = create_account(&client, role, account, &tokens).await;
            files.insert(role, file.to_str().unwrap().to_owned());
        }
        let (hosts, there) = ([address(), address()], address());
        publish_resolvers(&client, &hosts).await;
        let token = |role: &str| ("ELASTI_TOKEN_FILE", files[role].clone());
        let (operator, theirs) = start(&server, "operator", &there, &[token("operator")]);
        let more = [
            token("resolver"),
            ("ELASTI_OPERATOR_ADDRESS", format!("{there}:8013")),
            ("ELASTI_DRAIN_SECONDS", drain.to_string()),
        ];
        let mut resolvers = [None, None];
        for (resolver, host) in resolvers.iter_mut().zip(&hosts) {
            let (process, container) = start(&server, "resolver", host, &more);
            probed(&container, host).await;
            *resolver = Some(process);
        }
        probed(&theirs, &there).await;
        make_service(&client).await;
        let mut cluster = Self {
            server,
            client,
            hosts,
            resolvers,
            port: 0,
            _operator: operator,
            _tokens: tokens,
        };
        cluster.listened().await;
        cluster
    }

    /// Waits until both resolvers listen for the service.
    async fn listened(&mut self) {
        let services: Api<ElastiService> = Api::namespaced(self.client.clone(), "default");
        let port = async || {
            let status = services.get("web").await.unwrap().status?;
            status.asleep_since?;
            u64::try_from(status.ports.first()?.resolver_port).ok()
        };
        until("it sleeps", async || port().await.is_some()).await;
        self.port = port().await.unwrap();
        for host in &self.hosts {
            let there = format!("{host}:{}", self.port);
            until("the resolver listens", async || {
                TcpStream::connect(&there).await.is_ok()
            })
            .await;
        }
    }

    /// Sends requests and waits until the resolver holds them all.
    async fn held_by(&self, resolver: usize, count: usize) -> HeldResponses {
        let mut answers = JoinSet::new();
        for number in 0..count {
            let (host, port) = (self.hosts[resolver].clone(), self.port);
            let path = format!("/{resolver}/{number}");
            answers.spawn(async move { get(&host, port, &path).await });
        }
        let wanted = format!("neaptide_idle_held {count}");
        until("all are held", async || {
            let numbers = get(&self.hosts[resolver], INTERNAL, "/metrics").await;
            numbers.is_some_and(|(_, text)| text.lines().any(|line| line == wanted))
        })
        .await;
        answers
    }

    /// Waits until the target is scaled up.
    async fn is_woken(&self) {
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), "default");
        until("it is woken", async || {
            let found = deployments.get("web").await.unwrap();
            found.spec.unwrap().replicas == Some(1)
        })
        .await;
    }

    /// Starts a pod and publishes it as ready; returns the requests that it receives.
    async fn start_pod(&self, pods: &mut JoinSet<()>) -> RequestCounts {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = listener.local_addr().unwrap();
        let counts = RequestCounts::default();
        pods.spawn(serve(listener, counts.clone()));
        let services: Api<Service> = Api::namespaced(self.client.clone(), "default");
        let all = services.list(&ListParams::default()).await.unwrap();
        let mut names = all.iter().map(ResourceExt::name_any);
        let private = names.find(|name| name.starts_with("elasti-web-pvt-"));
        let slice = slice(&private.unwrap(), server);
        make::<EndpointSlice>(&self.client, "default", slice).await;
        counts
    }

    fn take(&mut self, resolver: usize) -> ChildProcess {
        self.resolvers[resolver].take().unwrap()
    }
}

fn slice(private: &str, pod: SocketAddr) -> Value {
    let address: IpAddr = pod.ip();
    json!({
        "metadata": {"name": private, "labels": {
            "kubernetes.io/service-name": private,
            "idle.neaptide.dev/private": "true",
        }},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": pod.port()}],
        "endpoints": [{"addresses": [address], "conditions": {"ready": true}}],
    })
}

async fn serve(listener: TcpListener, counts: RequestCounts) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(answer(stream, counts.clone()));
    }
}

async fn answer(stream: TcpStream, counts: RequestCounts) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while stream.read_line(&mut line).await? > 0 {
        if let Some(path) = line.strip_prefix("GET ") {
            let path = path.split(' ').next().unwrap_or_default().to_owned();
            *counts.lock().entry(path).or_insert(0) += 1;
        } else if line == "\r\n" {
            let hello = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
            stream.write_all(hello).await?;
        }
        line.clear();
    }
    Ok(())
}

/// Asserts that every path was requested once.
fn assert_once_each(counts: &RequestCounts, count: usize) {
    let counts = counts.lock();
    assert_eq!(counts.len(), count, "{counts:?}");
    assert!(counts.values().all(|times| *times == 1), "{counts:?}");
}

#[tokio::test]
async fn held_requests_of_a_stopping_resolver_reach_the_pod_that_starts() {
    let mut cluster = IdleCluster::new(100).await;
    let held = cluster.held_by(0, HELD).await;
    let ending = cluster.take(0);
    ending.signal("TERM");
    cluster.is_woken().await;
    let mut pods = JoinSet::new();
    let counts = cluster.start_pod(&mut pods).await;
    for answer in held.join_all().await {
        let (status, text) = answer.unwrap();
        assert!(status == 200 && text.ends_with("hello"), "{text}");
    }
    assert_once_each(&counts, HELD);
    assert_eq!(ending.ended().await, Some(0));
    cluster.server.stop();
}

#[tokio::test]
async fn held_requests_of_a_stopping_resolver_get_503_if_no_pod_starts() {
    let mut cluster = IdleCluster::new(4).await;
    let held = cluster.held_by(0, HELD).await;
    let ending = cluster.take(0);
    ending.signal("TERM");
    for answer in held.join_all().await {
        let (status, text) = answer.unwrap();
        assert_eq!(status, 503, "{text}");
        for word in ["retry-after: ", "ResolverEnding"] {
            assert!(text.contains(word), "{text}");
        }
    }
    assert_eq!(ending.ended().await, Some(0));
    assert_still_wakes(&cluster).await;
    cluster.server.stop();
}

#[tokio::test]
async fn held_requests_of_a_killed_resolver_fail_and_the_service_still_wakes() {
    let mut cluster = IdleCluster::new(100).await;
    let held = cluster.held_by(0, HELD).await;
    let killed = cluster.take(0);
    killed.signal("KILL");
    assert_eq!(killed.ended().await, None);
    for answer in held.join_all().await {
        assert_eq!(answer, None);
    }
    assert_still_wakes(&cluster).await;
    cluster.server.stop();
}

/// Asserts that requests to the other resolver succeed, and that no refused request reached the pod.
async fn assert_still_wakes(cluster: &IdleCluster) {
    cluster.is_woken().await;
    let held = cluster.held_by(1, HELD).await;
    let mut pods = JoinSet::new();
    let counts = cluster.start_pod(&mut pods).await;
    for answer in held.join_all().await {
        let (status, text) = answer.unwrap();
        assert!(status == 200 && text.ends_with("hello"), "{text}");
    }
    assert_once_each(&counts, HELD);
}
