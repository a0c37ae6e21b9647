//! A server in the test's own process, the controllers under test, and a node that plays along:
//! hours pass in milliseconds.

mod calls;
mod kubelet;

use std::{collections::BTreeMap, time::Duration};

use futures::future::BoxFuture;
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use neap_kit::{
    apply::Object,
    clock::Clock,
    lease::Leadership,
    manager::Service,
    site::Site,
    watch::{Ended, Watches},
};
use neap_pocket::{Options, Pocket, environment::Environment};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::util::MapRequest;

use self::calls::Calls;
pub(crate) use self::{
    calls::Call,
    kubelet::{Fate, Kubelet},
};

/// When the play begins.
pub(crate) const START: &str = "2026-01-01T00:00:00Z";

/// The fields of an object that is written as JSON.
pub(crate) fn fields(object: Value) -> serde_json::Map<String, Value> {
    match object {
        Value::Object(fields) => fields,
        _ => serde_json::Map::new(),
    }
}

pub(crate) struct Stage {
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) site: Site,
    calls: Calls,
    stop: CancellationToken,
    tasks: JoinSet<()>,
    _pocket: Pocket,
}

impl Stage {
    /// Opens the server and starts the services on it.
    pub(crate) async fn open(services: impl FnOnce(&Site) -> Result<Vec<Service>, Ended>) -> Self {
        let pocket = Pocket::open(Options::new(Environment::rehearsal(7)))
            .await
            .unwrap();
        let client = Client::new(pocket.service(), "default");
        let clock = Clock::starting_at(START.parse().unwrap());
        let (watches, watching) = Watches::new(clock);
        let calls = Calls::default();
        let noted = calls.clone();
        let noting = MapRequest::new(pocket.service(), move |request| noted.note(request));
        let site = Site {
            client: Client::new(noting, "default"),
            watches,
            leadership: Leadership::alone(clock),
            clock,
        };
        let mut stage = Self {
            client,
            clock,
            site: site.clone(),
            calls,
            stop: CancellationToken::new(),
            tasks: JoinSet::new(),
            _pocket: pocket,
        };
        for service in services(&site).unwrap() {
            stage.run(service.run(stage.stop.clone()));
        }
        let stop = stage.stop.clone();
        stage.run(Box::pin(watching.run(stop)));
        stage
    }

    fn run(&mut self, task: BoxFuture<'static, ()>) {
        self.tasks.spawn(task);
    }

    /// Starts one more service.
    pub(crate) fn and(mut self, service: impl FnOnce(&Site) -> Result<Service, Ended>) -> Self {
        let service = service(&self.site).unwrap();
        self.run(service.run(self.stop.clone()));
        self
    }

    /// Adds a node that runs pods as `kubelet` says.
    pub(crate) fn with(mut self, kubelet: Kubelet) -> Self {
        let (client, clock) = (self.client.clone(), self.clock);
        self.run(Box::pin(async move { kubelet.run(client, clock).await }));
        self
    }

    /// Lets this much time pass, and with it everything that happens meanwhile.
    pub(crate) async fn pass(&self, time: Duration) {
        self.clock.sleep(time).await;
    }

    /// How many writes the controllers have tried, whatever came of them.
    pub(crate) fn writes(&self) -> u64 {
        let metrics = self.site.watches.process().metrics();
        let counted = metrics
            .lines()
            .filter(|line| line.starts_with("neaptide_writes_total{"));
        let numbers = counted.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        numbers.sum()
    }

    /// What the services have asked of the server since this was last called, and how often.
    pub(crate) fn calls(&self) -> BTreeMap<Call, usize> {
        self.calls.take()
    }

    /// Fails if anything that was started has ended: nothing is to end before the play does.
    pub(crate) fn assert_all_run(&mut self) {
        let ended = self.tasks.try_join_next();
        assert!(
            ended.is_none(),
            "a service or the node has ended: {ended:?}"
        );
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        Api::default_namespaced(self.client.clone())
    }

    pub(crate) async fn create<K>(&self, object: Value) -> K
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let object = serde_json::from_value(object).unwrap();
        let made = self.api().create(&PostParams::default(), &object).await;
        made.unwrap()
    }

    pub(crate) async fn get<K>(&self, name: &str) -> K
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        self.api().get(name).await.unwrap()
    }

    /// All objects of a kind in the namespace of the play.
    pub(crate) async fn list<K>(&self) -> Vec<K>
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        self.api().list(&ListParams::default()).await.unwrap().items
    }

    pub(crate) async fn patch<K>(&self, name: &str, patch: Value) -> K
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let (api, parameters, patch) = (self.api(), PatchParams::default(), Patch::Merge(patch));
        api.patch(name, &parameters, &patch).await.unwrap()
    }

    pub(crate) async fn patch_status<K>(&self, name: &str, status: Value) -> K
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let patch = Patch::Merge(serde_json::json!({"status": status}));
        let api = self.api();
        let patched = api
            .patch_status(name, &PatchParams::default(), &patch)
            .await;
        patched.unwrap()
    }

    /// Creates an object that is in no namespace.
    pub(crate) async fn create_for_all<K>(&self, object: Value) -> K
    where
        K: Object + Resource<Scope = ClusterResourceScope>,
    {
        let object = serde_json::from_value(object).unwrap();
        let made = Api::all(self.client.clone())
            .create(&PostParams::default(), &object)
            .await;
        made.unwrap()
    }

    pub(crate) async fn delete<K>(&self, name: &str)
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let deleted = self.api::<K>().delete(name, &DeleteParams::default()).await;
        deleted.unwrap();
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
