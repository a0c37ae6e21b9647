//! The cluster and namespace of a command, and how components are read there.

use kube::{Api, Resource, api::ListParams};
use neap_farm::{
    api::{
        BuildbarnBrowser, BuildbarnFrontend, BuildbarnScheduler, BuildbarnStorage, BuildbarnWorker,
        ports,
    },
    farm::{Component, ComponentKind, objects::queue_service_name},
};
use neap_kit::clock::Clock;
use serde::de::DeserializeOwned;

use crate::{
    cli::{ClusterOptions, Scope},
    exit::{Exit, Failure},
    inspect::cluster::Cluster,
};

/// A cluster, and the namespace of a command; all namespaces if there is none.
pub(super) struct FarmScope {
    pub(super) cluster: Cluster,
    pub(super) namespace: Option<String>,
    pub(super) clock: Clock,
}

impl FarmScope {
    pub(super) async fn of(scope: &Scope) -> Result<Self, Failure> {
        let all = scope.all_namespaces;
        let scope = Self::named(&scope.cluster, scope.namespace.as_deref()).await?;
        Ok(Self {
            namespace: scope.namespace.filter(|_| !all),
            ..scope
        })
    }

    pub(super) async fn named(
        options: &ClusterOptions,
        namespace: Option<&str>,
    ) -> Result<Self, Failure> {
        let cluster = Cluster::connect(options, None).await?;
        let namespace = namespace.map_or_else(|| cluster.namespace.clone(), str::to_owned);
        Ok(Self {
            cluster,
            namespace: Some(namespace),
            clock: Clock::system(),
        })
    }

    pub(super) fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        match &self.namespace {
            Some(namespace) => Api::namespaced(self.cluster.client.clone(), namespace),
            None => Api::all(self.cluster.client.clone()),
        }
    }

    /// All components, ordered by namespace, farm, kind and name.
    pub(super) async fn components(&self) -> Result<Vec<Component>, Failure> {
        let mut all = self.list::<BuildbarnStorage>().await?;
        all.extend(self.list::<BuildbarnScheduler>().await?);
        all.extend(self.list::<BuildbarnWorker>().await?);
        all.extend(self.list::<BuildbarnFrontend>().await?);
        all.extend(self.list::<BuildbarnBrowser>().await?);
        all.sort_by(|one, other| {
            let order = |it: &Component| {
                let text = |text: &str| text.to_owned();
                (
                    text(it.namespace()),
                    text(it.farm()),
                    it.kind,
                    text(it.name()),
                )
            };
            order(one).cmp(&order(other))
        });
        Ok(all)
    }

    async fn list<K>(&self) -> Result<Vec<Component>, Failure>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
        K: Clone + std::fmt::Debug + DeserializeOwned,
        Component: for<'a> From<&'a K>,
    {
        let found = self.api::<K>().list(&ListParams::default()).await;
        let found = found.map_err(|error| match &error {
            kube::Error::Api(status) if status.code == 404 => not_installed(),
            error => self.cluster.failed(&format!("{}s", K::kind(&())), error),
        })?;
        Ok(found.items.iter().map(Component::from).collect())
    }

    /// The pools.
    pub(super) async fn pools(&self) -> Result<Vec<Component>, Failure> {
        self.list::<BuildbarnWorker>().await
    }

    /// The address of a scheduler's build queue.
    pub(super) async fn queue_address(&self, scheduler: &Component) -> Result<String, Failure> {
        let (namespace, name) = (scheduler.namespace(), queue_service_name(scheduler));
        self.address(namespace, &name, ports::BUILD_QUEUE_STATE)
            .await
    }

    /// HOST:PORT of the Service of a component, by its cluster IP.
    pub(super) async fn service_address(
        &self,
        component: &Component,
        port: u16,
    ) -> Result<String, Failure> {
        self.address(component.namespace(), component.name(), port)
            .await
    }

    async fn address(&self, namespace: &str, name: &str, port: u16) -> Result<String, Failure> {
        use k8s_openapi::api::core::v1::Service;
        let services: Api<Service> = Api::namespaced(self.cluster.client.clone(), namespace);
        let service = services.get(name).await;
        let what = format!("the Service {name}");
        let service = service.map_err(|error| self.cluster.failed(&what, &error))?;
        let address = service
            .spec
            .and_then(|spec| spec.cluster_ip)
            .unwrap_or_default();
        Ok(if address.contains(':') {
            format!("[{address}]:{port}")
        } else {
            format!("{address}:{port}")
        })
    }
}

/// The name of the farm whose components have no label. No label has this value.
const UNNAMED: &str = "-";

/// A farm as it is shown: by the value of its label.
pub(super) fn shown_farm(label: &str) -> String {
    if label.is_empty() { UNNAMED } else { label }.to_owned()
}

/// The value of the label of a farm that a user names as it is shown.
pub(super) fn farm_label(name: &str) -> &str {
    if name == UNNAMED { "" } else { name }
}

/// The components of a kind.
pub(super) fn of_kind(
    components: &[Component],
    kind: ComponentKind,
) -> impl Iterator<Item = &Component> {
    components.iter().filter(move |it| it.kind == kind)
}

pub(super) fn not_installed() -> Failure {
    let why = "the server does not serve the kinds of build farms";
    Failure::new(
        "NT-FARM-0006",
        Exit::NotFound,
        "there are no build farms here",
        why,
    )
    .remedy("install deploy/farm in the cluster, or try it in neap up")
}

pub(super) fn no_such(what: &str, name: &str, namespace: &str) -> Failure {
    let (what, why) = if farm_label(name).is_empty() {
        let why = format!("namespace {namespace} has none");
        (format!("there is no {what}"), why)
    } else {
        let why = format!("namespace {namespace} has none of that name");
        (format!("there is no {what} {name:?}"), why)
    };
    Failure::new("NT-FARM-0003", Exit::NotFound, &what, &why)
        .remedy("list them with neap farm list -A and neap farm pools -A")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_farm_without_a_name_is_not_quoted() {
        for name in ["", "-"] {
            let text = no_such("farm", name, "shop").to_string();
            assert!(
                text.starts_with("there is no farm: namespace shop has none"),
                "{text}"
            );
        }
        let named = no_such("farm", "one", "shop").to_string();
        assert!(
            named.starts_with("there is no farm \"one\": namespace shop"),
            "{named}"
        );
    }

    #[test]
    fn a_farm_without_a_label_has_a_name_that_commands_accept() {
        assert_eq!(shown_farm(""), "-");
        for label in ["", "one"] {
            assert_eq!(farm_label(&shown_farm(label)), label);
        }
        assert_eq!(farm_label(""), "");
    }
}
