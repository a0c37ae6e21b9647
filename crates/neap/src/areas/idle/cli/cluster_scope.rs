//! The cluster and namespace of a command, and how ElastiServices are read there.

use neap_idle::{
    account::{Account, account},
    api::ElastiService,
    area::ELASTI_SERVICE,
};
use neap_kit::clock::Clock;
use serde_json::Value;

use crate::{
    cli::{ClusterOptions, Scope},
    exit::{Exit, Failure},
    inspect::{cluster::Cluster, read},
};

/// A cluster, and the namespace of a command; all namespaces if there is none.
pub(super) struct ClusterScope {
    pub(super) cluster: Cluster,
    pub(super) namespace: Option<String>,
    pub(super) clock: Clock,
}

impl ClusterScope {
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

    /// All ElastiServices, ordered by namespace and name.
    pub(super) async fn services(&self) -> Result<Vec<ElastiService>, Failure> {
        let client = &self.cluster.client;
        let found = read::list(client, ELASTI_SERVICE, self.namespace.as_deref(), None).await;
        let found = found.map_err(|error| self.cluster.failed("ElastiServices", &error))?;
        if found.is_empty() {
            self.check_served().await?;
        }
        let mut read = parse_all(found)?;
        read.sort_by_key(|one| (one.metadata.namespace.clone(), one.metadata.name.clone()));
        Ok(read)
    }

    /// The accounts of all ElastiServices.
    pub(super) async fn accounts(&self) -> Result<Vec<Account>, Failure> {
        let now = self.clock.now();
        let services = self.services().await?;
        Ok(services.iter().map(|one| account(one, now)).collect())
    }

    /// The ElastiService of this name.
    pub(super) async fn service(&self, name: &str) -> Result<ElastiService, Failure> {
        let namespace = self.namespace.as_deref();
        let path = read::path(ELASTI_SERVICE.api_version, namespace, ELASTI_SERVICE.plural);
        let found = read::find(&self.cluster.client, &format!("{path}/{name}")).await;
        let failed = |error| {
            self.cluster
                .failed(&format!("ElastiService {name}"), &error)
        };
        let Some(found) = found.map_err(failed)? else {
            self.check_served().await?;
            return Err(missing(namespace.unwrap_or_default(), name));
        };
        serde_json::from_value(found).map_err(|error| unreadable(name, &error))
    }

    /// Fails if the API server does not serve the kind: its list is empty then.
    pub(super) async fn check_served(&self) -> Result<(), Failure> {
        let path = format!("/apis/{}", ELASTI_SERVICE.api_version);
        let found = read::find(&self.cluster.client, &path).await;
        match found.map_err(|error| self.cluster.failed("its kinds", &error))? {
            Some(_) => Ok(()),
            None => Err(unserved(&self.cluster)),
        }
    }
}

/// Parses all objects, or names those that cannot be parsed: one that is left out would look deleted.
fn parse_all(found: Vec<Value>) -> Result<Vec<ElastiService>, Failure> {
    let mut read = Vec::new();
    let mut invalid: Vec<String> = Vec::new();
    let mut first = None;
    for one in found {
        let text = |field: &str| {
            one["metadata"][field]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let name = format!("{}/{}", text("namespace"), text("name"));
        match serde_json::from_value(one) {
            Ok(one) => read.push(one),
            Err(error) => {
                invalid.push(name);
                first.get_or_insert(error);
            }
        }
    }
    match first {
        None => Ok(read),
        Some(error) => Err(unreadable(&invalid.join(", "), &error)),
    }
}

fn unreadable(names: &str, error: &serde_json::Error) -> Failure {
    let what = format!("ElastiService {names} cannot be parsed");
    Failure::new("NT-CLI-0006", Exit::Failed, &what, &error.to_string())
        .remedy("check whether this neap is as new as the definition in the cluster")
}

fn unserved(cluster: &Cluster) -> Failure {
    let why = format!("{} does not serve ElastiServices", cluster.address);
    Failure::new("NT-IDLE-0006", Exit::NotFound, "services cannot sleep in this cluster", &why)
        .remedy("install deploy/idle there (kubectl apply -k deploy/idle/kustomize), or try it in `neap up`, which includes it")
}

fn missing(namespace: &str, name: &str) -> Failure {
    let what = format!("there is no ElastiService {name}");
    let why = format!("the namespace {namespace} has none of that name");
    Failure::new("NT-IDLE-0007", Exit::NotFound, &what, &why)
        .remedy("neap idle list -A lists all; set another namespace with -n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_that_cannot_be_parsed_is_named_and_not_left_out() {
        let service = |name: &str, spec: Value| {
            json!({
                "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService",
                "metadata": {"namespace": "shop", "name": name}, "spec": spec,
            })
        };
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "cart"});
        let good = service("cart", json!({"service": "cart", "scaleTargetRef": target}));
        assert_eq!(parse_all(vec![good.clone()]).unwrap().len(), 1);
        let bad = service("odd", json!({"service": 7}));
        let error = format!("{:?}", parse_all(vec![good, bad]).unwrap_err());
        assert!(
            error.contains("NT-CLI-0006") && error.contains("shop/odd"),
            "{error}"
        );
    }
}
