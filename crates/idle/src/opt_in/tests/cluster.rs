//! An API server with the controller of annotations beside it.

use super::*;

pub(super) fn limits() -> OptInLimits {
    OptInLimits {
        servers: "http://prometheus.example:9090".parse().unwrap(),
        ..OptInLimits::default()
    }
}

pub(super) struct TestCluster {
    pub(super) client: Client,
    pub(super) clock: Clock,
    /// Whether reads of Deployments fail.
    pub(super) blind: Arc<AtomicBool>,
    stop: CancellationToken,
    _tasks: JoinSet<()>,
    _pocket: Pocket,
}

/// A client whose reads of Deployments fail while `blind` is set.
fn failing_client(pocket: &Pocket, blind: Arc<AtomicBool>) -> Client {
    const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
    let failing_client = pocket
        .service()
        .map_request(move |mut request: Request<Body>| {
            if blind.load(Ordering::SeqCst) && request.uri().path() == DEPLOYMENTS {
                *request.uri_mut() = "/apis/apps/v1/namespaces/default/none".parse().unwrap();
            }
            request
        });
    Client::new(failing_client, "default")
}

impl TestCluster {
    pub(super) async fn open() -> Self {
        let options = Options::new(Environment::simulated(7));
        let pocket = Pocket::open(options).await.unwrap();
        let client = Client::new(pocket.service(), "default");
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let (watches, watching) = Watches::new(clock);
        let blind = Arc::<AtomicBool>::default();
        let context = Context {
            client: failing_client(&pocket, blind.clone()),
            watches,
            leadership: Leadership::without_election(clock),
            clock,
        };
        let definitions = Api::all(client.clone());
        let parameters = PostParams::default();
        definitions
            .create(&parameters, &ElastiService::crd())
            .await
            .unwrap();
        clock.sleep(Duration::from_secs(1)).await;
        let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
        let controller = component(&context, "elasti", &limits()).unwrap();
        tasks.spawn(controller.run(stop.clone()));
        tasks.spawn(watching.run(stop.clone()));
        Self {
            client,
            clock,
            blind,
            stop,
            _tasks: tasks,
            _pocket: pocket,
        }
    }

    pub(super) fn api<K: Object + Resource<Scope = NamespaceResourceScope>>(&self) -> Api<K> {
        Api::default_namespaced(self.client.clone())
    }

    pub(super) async fn create<K: Object + Resource<Scope = NamespaceResourceScope>>(
        &self,
        object: Value,
    ) {
        let object = serde_json::from_value(object).unwrap();
        let parameters = PostParams::default();
        self.api::<K>().create(&parameters, &object).await.unwrap();
        self.clock.sleep(Duration::from_secs(1)).await;
    }

    pub(super) async fn annotate<K>(&self, name: &str, annotations: Value)
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        let parameters = PatchParams::default();
        self.api::<K>()
            .patch(name, &parameters, &patch)
            .await
            .unwrap();
        self.clock.sleep(Duration::from_secs(1)).await;
    }

    /// Annotates a Namespace, which is created if it does not exist.
    pub(super) async fn annotate_namespace(&self, namespace: &str, annotations: Value) {
        let object = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": namespace, "annotations": annotations},
        });
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        if namespaces.get_opt(namespace).await.unwrap().is_none() {
            let object = serde_json::from_value(object).unwrap();
            let parameters = PostParams::default();
            namespaces.create(&parameters, &object).await.unwrap();
        } else {
            let (parameters, patch) = (PatchParams::default(), Patch::Merge(object));
            let annotations = namespaces.patch(namespace, &parameters, &patch).await;
            annotations.unwrap();
        }
        self.clock.sleep(Duration::from_secs(1)).await;
    }

    pub(super) async fn elasti_service(&self, name: &str) -> Option<ElastiService> {
        self.api().get_opt(name).await.unwrap()
    }

    pub(super) async fn elasti_services(&self) -> Vec<ElastiService> {
        let all = self.api::<ElastiService>();
        all.list(&ListParams::default()).await.unwrap().items
    }

    /// Defines ScaledObjects, and creates one for each of these Deployments.
    pub(super) async fn scaled_objects(&self, deployments: &[&str]) {
        let definition = json!({
            "metadata": {"name": "scaledobjects.keda.sh"},
            "spec": {
                "group": "keda.sh", "scope": "Namespaced",
                "names": {"kind": "ScaledObject", "plural": "scaledobjects"},
                "versions": [{
                    "name": "v1alpha1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {
                        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    }},
                }],
            },
        });
        let definition: CustomResourceDefinition = serde_json::from_value(definition).unwrap();
        let definitions = Api::all(self.client.clone());
        let parameters = PostParams::default();
        definitions.create(&parameters, &definition).await.unwrap();
        self.clock.sleep(Duration::from_secs(1)).await;
        let kind = crate::target::scaled_object_kind().resource;
        let api: Api<DynamicObject> = Api::default_namespaced_with(self.client.clone(), &kind);
        for name in deployments {
            let object = DynamicObject::new(&format!("of-{name}"), &kind)
                .data(json!({"spec": {"scaleTargetRef": {"name": name}}}));
            api.create(&parameters, &object).await.unwrap();
        }
    }

    pub(super) async fn events(&self) -> Vec<(String, String)> {
        let events = self.api::<Event>().list(&ListParams::default()).await;
        let events = events.unwrap().items.into_iter();
        events
            .map(|event| (event.reason.unwrap(), event.message.unwrap()))
            .collect()
    }
}

impl Drop for TestCluster {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

pub(super) fn public(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    })
}

pub(super) fn deployment(name: &str) -> Value {
    let labels = json!({"app": "web", "tier": name});
    json!({
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "web"}]},
            },
        },
    })
}
