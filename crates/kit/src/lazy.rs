//! Parts of a process that start when they are first used: their cost in time and memory is paid then, and
//! not by every user of the program.

use std::sync::Arc;

use futures::{StreamExt, future::select_all};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
    core::{GroupVersionKind, PartialObjectMeta},
    runtime::watcher::{self, Event, watcher},
};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{
    clock::Clock,
    manager::{Component, ComponentStarter},
};

/// The delay before a failed look for the first object is repeated.
const RETRY_DELAY: std::time::Duration = std::time::Duration::from_secs(1);

/// The moment at which a part is first used. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct FirstUse(CancellationToken);

impl FirstUse {
    /// The part is used from now on: by a request, for example.
    pub fn mark(&self) {
        self.0.cancel();
    }

    /// Whether the part has been used.
    pub fn is_marked(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Resolves once the part is used.
    pub async fn marked(&self) {
        self.0.cancelled().await;
    }
}

/// The component `name`, which waits for the first use and then starts what `start` returns. The first object
/// of one of the defined kinds is a use, also one of an earlier run. If `start` fails, the process goes on without the
/// part, is not ready, and says why.
pub fn component(
    name: &'static str,
    (client, clock): (Client, Clock),
    starter: ComponentStarter,
    (definitions, first_use): (fn() -> Vec<CustomResourceDefinition>, FirstUse),
    start: impl FnOnce() -> Result<Vec<Component>, String> + Send + 'static,
) -> Component {
    let problem = Arc::new(Mutex::new(None));
    let shown = problem.clone();
    let run = move |stop: CancellationToken| async move {
        let used = async {
            let definitions = definitions();
            tokio::select! {
                () = first_use.marked() => {}
                () = first_object(client, clock, &definitions) => first_use.mark(),
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = used => {}
        }
        tracing::info!(name, "used for the first time: starting");
        match start() {
            Ok(components) => {
                for component in components {
                    starter.start(component).await;
                }
            }
            Err(error) => {
                tracing::error!(name, error, "cannot start; everything else goes on");
                *problem.lock() = Some(error);
            }
        }
        stop.cancelled().await;
    };
    Component::new(name, run).ready_when(move || shown.lock().clone())
}

/// Resolves once there is an object of one of the kinds; never if there is no kind.
async fn first_object(client: Client, clock: Clock, definitions: &[CustomResourceDefinition]) {
    if definitions.is_empty() {
        return std::future::pending().await;
    }
    let waiting = definitions.iter().map(|definition| {
        let (client, resource) = (client.clone(), resource(definition));
        Box::pin(async move {
            let api: Api<PartialObjectMeta<DynamicObject>> = Api::all_with(client, &resource);
            let config = watcher::Config::default().page_size(1);
            loop {
                let mut events = Box::pin(watcher(api.clone(), config.clone()));
                while let Some(event) = events.next().await {
                    match event {
                        Ok(Event::InitApply(_) | Event::Apply(_)) => return,
                        Ok(Event::Init | Event::InitDone | Event::Delete(_)) => {}
                        // The kind is not served yet, or the server is busy.
                        Err(_) => break,
                    }
                }
                clock.sleep(RETRY_DELAY).await;
            }
        })
    });
    select_all(waiting).await;
}

fn resource(definition: &CustomResourceDefinition) -> ApiResource {
    let spec = &definition.spec;
    let mut versions = spec.versions.iter().filter(|version| version.served);
    let version = versions.next().map_or("v1", |version| &version.name);
    let gvk = GroupVersionKind::gvk(&spec.group, version, &spec.names.kind);
    ApiResource::from_gvk_with_plural(&gvk, &spec.names.plural)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{CustomResourceExt, api::PostParams};
    use serde_json::json;

    use super::*;
    use crate::{
        context::Context, lease::Leadership, manager::Manager, operation::Operation,
        server::Server, watch::Watches,
    };

    /// Runs a process with a lazy part during `script`, which learns whether the part runs.
    async fn with_part<F: Future<Output = ()>>(
        start: impl FnOnce() -> Result<(), String> + Send + 'static,
        script: impl FnOnce(Server, FirstUse, Arc<Mutex<bool>>, crate::manager::Health) -> F,
    ) {
        let server = Server::open().await;
        let clock = Clock::system();
        let (watches, _runner) = Watches::new(clock);
        let context = Context {
            client: server.client.clone(),
            watches,
            leadership: Leadership::without_election(clock),
            clock,
        };
        let mut manager = Manager::new(&context);
        let (first_use, runs) = (FirstUse::default(), Arc::new(Mutex::new(false)));
        let began = runs.clone();
        let start = move || {
            start()?;
            Ok(vec![Component::new("part", move |stop| async move {
                *began.lock() = true;
                stop.cancelled().await;
            })])
        };
        let definitions = || vec![Operation::crd()];
        let used = (definitions as fn() -> _, first_use.clone());
        let access = (context.client.clone(), clock);
        manager.add(component("lazy", access, manager.starter(), used, start));
        let (stop, health) = (CancellationToken::new(), manager.health());
        let script = async {
            script(server, first_use, runs, health).await;
            stop.cancel();
        };
        let (ended, ()) = tokio::join!(manager.run(stop.clone()), script);
        ended.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_starts_with_the_first_object_of_one_of_its_kinds() {
        with_part(
            || Ok(()),
            async |server, first_use, runs, _| {
                let clock = Clock::system();
                clock.sleep(Duration::from_secs(5)).await;
                server.install(&Operation::crd()).await;
                let other: Api<ConfigMap> = Api::default_namespaced(server.client.clone());
                let map = serde_json::from_value(json!({"metadata": {"name": "other"}})).unwrap();
                other.create(&PostParams::default(), &map).await.unwrap();
                clock.sleep(Duration::from_secs(5)).await;
                assert!(
                    !*runs.lock() && !first_use.is_marked(),
                    "no object of its kind"
                );
                let operations: Api<Operation> = Api::default_namespaced(server.client.clone());
                let operation = json!({
                    "apiVersion": "neaptide.dev/v1alpha1", "kind": "Operation",
                    "metadata": {"name": "first"},
                    "spec": {"work": "pour", "target": {"kind": "Boat", "name": "tug"}},
                });
                let operation = serde_json::from_value(operation).unwrap();
                operations
                    .create(&PostParams::default(), &operation)
                    .await
                    .unwrap();
                clock.sleep(Duration::from_secs(5)).await;
                assert!(*runs.lock() && first_use.is_marked());
            },
        )
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_that_cannot_start_is_named_and_stops_nothing() {
        with_part(
            || Err("port 5000 is in use".to_owned()),
            async |_, first_use, runs, health| {
                let clock = Clock::system();
                clock.sleep(Duration::from_secs(1)).await;
                assert_eq!(health.not_ready(), [""; 0]);
                first_use.mark();
                clock.sleep(Duration::from_secs(1)).await;
                assert_eq!(health.not_ready(), ["lazy: port 5000 is in use"]);
                assert!(!*runs.lock());
            },
        )
        .await;
    }
}
