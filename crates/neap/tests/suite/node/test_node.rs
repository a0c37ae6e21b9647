//! A node with the controllers it needs, and an API server in this process.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use k8s_openapi::{
    NamespaceResourceScope,
    api::core::v1::{ConfigMap, Event, Pod, Service},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
    runtime::wait::{await_condition, conditions},
};
use neap_kit::{apply::Object, clock::Clock, context::Context, lease::Leadership, watch::Watches};
use neap_pocket::{Options, Pocket, environment::Environment};
use neap_world::{
    endpoint_slice,
    node::{self, address::Block, image::Images},
    persistent_volume,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::api_errors::{self, FaultRule};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Bounds every wait.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) struct TestNode {
    pub(crate) client: Client,
    pub(crate) pods: Api<Pod>,
    pub(crate) maps: Api<ConfigMap>,
    pub(crate) folder: TempDir,
    stop: CancellationToken,
    tasks: JoinSet<()>,
    _pocket: Pocket,
}

impl TestNode {
    pub(crate) async fn start() -> Self {
        Self::with_faults(|_| None).await
    }

    /// Starts a node as `neap up --restricted` does.
    pub(crate) async fn restricted() -> Self {
        Self::with(|_| None, true).await
    }

    /// Starts a node whose requests fail as `rule` decides.
    pub(crate) async fn with_faults(rule: impl FaultRule) -> Self {
        Self::with(rule, false).await
    }

    async fn with(rule: impl FaultRule, restricted: bool) -> Self {
        let mut options = Options::new(Environment::simulated(7));
        options.settings.loopback_endpoints = true;
        options.root_ca = Some("none that is used here".into());
        let pocket = Pocket::open(options).await.unwrap();
        let client = Client::new(pocket.service(), "default");
        let folder = tempfile::tempdir().unwrap();
        // The folder that a killed node has left of a deleted pod.
        fs::create_dir_all(folder.path().join("pods/former/volumes")).unwrap();
        let clock = Clock::system();
        let (watches, watching) = Watches::new(clock);
        let context = Context {
            client: api_errors::client(pocket.service(), rule),
            watches,
            leadership: Leadership::without_election(clock),
            clock,
        };
        let neap = Path::new(env!("CARGO_BIN_EXE_neap"));
        let options = node::NodeOptions {
            name: "here".into(),
            folder: folder.path().to_owned(),
            launcher: neap.to_owned(),
            images: Images::builtin(neap).into(),
            block: Block::new(77).unwrap(),
            environment: BTreeMap::new(),
            namespaces: true,
            own_proc: node::namespace_support::own_proc(neap, folder.path()).is_ok(),
            restricted,
            as_root: node::namespace_support::as_root(neap, folder.path()).is_ok(),
        };
        let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
        let volumes = folder.path().join("volumes");
        for component in [
            persistent_volume::component(&context, &volumes).unwrap(),
            persistent_volume::volume_component(&context, &volumes).unwrap(),
            endpoint_slice::component(&context).unwrap(),
            node::component(&context, options).unwrap(),
        ] {
            tasks.spawn(component.run(stop.clone()));
        }
        tasks.spawn(watching.run(stop.clone()));
        Self {
            pods: Api::default_namespaced(client.clone()),
            maps: Api::default_namespaced(client.clone()),
            client,
            folder,
            stop,
            tasks,
            _pocket: pocket,
        }
    }

    /// Creates a pod with one container that runs `script`; `more` is merged into its manifest.
    pub(crate) async fn run(&self, name: &str, script: &str, more: Value) -> Pod {
        let container =
            json!({"name": "main", "image": "busybox", "command": ["sh", "-c", script]});
        let mut pod = json!({
            "metadata": {"name": name},
            "spec": {"nodeName": "here", "restartPolicy": "Never", "terminationGracePeriodSeconds": 5, "containers": [container]},
        });
        merge(&mut pod, more);
        let pod = serde_json::from_value(pod).unwrap();
        self.pods
            .create(&PostParams::default(), &pod)
            .await
            .unwrap()
    }

    /// Waits until the pod fulfils `condition`.
    pub(crate) async fn when(&self, name: &str, condition: impl Fn(&Pod) -> bool) -> Pod {
        let condition = |pod: Option<&Pod>| pod.is_some_and(&condition);
        let waited = await_condition(self.pods.clone(), name, condition);
        let Ok(found) = tokio::time::timeout(WAIT_TIMEOUT, waited).await else {
            let pod = self.pods.get(name).await.unwrap();
            panic!("condition not met: {:#?}", pod.status);
        };
        found.unwrap().unwrap()
    }

    pub(crate) async fn phase(&self, name: &str, phase: &str) -> Pod {
        let is_in = |pod: &Pod| {
            pod.status
                .as_ref()
                .and_then(|status| status.phase.as_deref())
                == Some(phase)
        };
        self.when(name, is_in).await
    }

    /// Waits until the container has printed the line.
    pub(crate) async fn prints(&self, pod: &Pod, line: &str) {
        let mut polls = tokio::time::interval(Duration::from_millis(10));
        let printed = async {
            while !self.printed(pod).iter().any(|printed| printed == line) {
                polls.tick().await;
            }
        };
        let waited = tokio::time::timeout(WAIT_TIMEOUT, printed).await;
        assert!(waited.is_ok(), "{line} is not in {:?}", self.printed(pod));
    }

    pub(crate) async fn create<K>(&self, object: Value) -> K
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let api: Api<K> = Api::default_namespaced(self.client.clone());
        let object = serde_json::from_value(object).unwrap();
        api.create(&PostParams::default(), &object).await.unwrap()
    }

    pub(crate) async fn delete<K>(&self, name: &str)
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let api: Api<K> = Api::default_namespaced(self.client.clone());
        api.delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Waits until the pod is deleted.
    pub(crate) async fn gone(&self, pod: &Pod) {
        let (name, uid) = (pod.name_any(), pod.uid().unwrap());
        let gone = await_condition(self.pods.clone(), &name, conditions::is_deleted(&uid));
        tokio::time::timeout(WAIT_TIMEOUT, gone)
            .await
            .unwrap()
            .unwrap();
    }

    /// Waits until the pod has an Event with this reason and these words in its message.
    pub(crate) async fn has_event(&self, pod: &str, reason: &str, words: &str) {
        let mut polls = tokio::time::interval(Duration::from_millis(10));
        let found = async {
            loop {
                polls.tick().await;
                let events = self.events(pod).await;
                let matches =
                    |(why, message): &(String, String)| why == reason && message.contains(words);
                if events.iter().any(matches) {
                    return;
                }
            }
        };
        let waited = tokio::time::timeout(WAIT_TIMEOUT, found).await;
        assert!(
            waited.is_ok(),
            "{reason} {words}: {:?}",
            self.events(pod).await
        );
    }

    /// Reasons and messages of the Events of a pod.
    pub(crate) async fn events(&self, pod: &str) -> Vec<(String, String)> {
        let events: Api<Event> = Api::default_namespaced(self.client.clone());
        let events = events.list(&ListParams::default()).await.unwrap();
        let of = events
            .into_iter()
            .filter(|event| event.involved_object.name.as_deref() == Some(pod));
        let said = of.map(|event| (event.reason, event.message));
        said.map(|(reason, message)| (reason.unwrap_or_default(), message.unwrap_or_default()))
            .collect()
    }

    /// The address of a service, if there is such a service.
    pub(crate) async fn address_of(&self, service: &str) -> Option<String> {
        let services: Api<Service> = Api::default_namespaced(self.client.clone());
        let found = services.get_opt(service).await.unwrap()?;
        found.spec.and_then(|spec| spec.cluster_ip)
    }

    /// Stops the node and waits for its end.
    pub(crate) async fn end(&mut self) {
        self.stop.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap();
        }
    }

    /// The lines that the container printed.
    pub(crate) fn printed(&self, pod: &Pod) -> Vec<String> {
        let uid = pod.metadata.uid.as_deref().unwrap();
        let log = self
            .folder
            .path()
            .join("pods")
            .join(uid)
            .join("containers/main/log");
        let text = fs::read(log).unwrap_or_default();
        let lines = text.split(|&byte| byte == b'\n');
        let lines = lines.filter_map(node::process::LogLine::read);
        lines
            .map(|line| String::from_utf8_lossy(line.text).into_owned())
            .collect()
    }
}

impl Drop for TestNode {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

pub(crate) fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(more)) if into.len() == more.len() => {
            into.iter_mut()
                .zip(more)
                .for_each(|(into, more)| merge(into, more));
        }
        (into, more) => *into = more,
    }
}
