//! The objects that operator and resolver need: the definition of their kind, their ServiceAccounts, and the
//! address of the resolver. In a cluster the manifests of deploy/idle create them.

use std::{collections::BTreeMap, net::IpAddr, path::PathBuf, time::Duration};

use k8s_openapi::api::{
    authentication::v1::TokenRequest,
    core::v1::{Namespace, Service, ServiceAccount},
    discovery::v1::EndpointSlice,
};
use kube::{CustomResourceExt, Resource};
use neap_idle::api::ElastiService;
use neap_kit::{
    apply::{self, Object, Writer},
    context::Context,
    definitions,
    key::Key,
    manager::Component,
    why::chain,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{INTERNAL, NAMESPACE, OPERATOR, RESOLVER, RESOLVER_SERVICE, SHARED, token};
use crate::{
    areas::{StartGate, served},
    up::private,
};

/// The EndpointSlice with the address of the resolver.
const SLICE: &str = "elasti-resolver-service-neap";
/// The lifetime of a token.
const TOKEN_LIFETIME: Duration = Duration::from_hours(24);
/// The time between two checks: a user may have deleted an object.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// The delay after a failure.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// Maintains the objects, and the tokens in files.
pub(super) struct InstalledObjects {
    /// The address of the resolver.
    pub(super) resolver: IpAddr,
    /// The folder of the tokens.
    pub(super) tokens: PathBuf,
}

/// What this process has created.
#[derive(Default)]
struct ObjectState {
    /// The kind was served. A definition that a user deletes after that is not created again before the next
    /// start, as `neap idle uninstall` requires.
    defined: bool,
    /// The uids of the accounts for which a token was last written, by name.
    tokens: BTreeMap<&'static str, Option<String>>,
}

/// Why an object could not be created.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Api(#[from] apply::Error),
    #[error("an object in the program is invalid")]
    Object(#[from] serde_json::Error),
    #[error("a token cannot be written to its file")]
    Token(#[from] std::io::Error),
    #[error("the API server returned no token")]
    NoToken,
    #[error("an object was deleted right after it was created")]
    Deleted,
}

impl InstalledObjects {
    /// The gate is dropped when everything is there for the first time.
    pub(super) fn component(self, context: &Context, gate: StartGate) -> Component {
        let (writer, clock) = (context.writer("neap-up"), context.clock);
        Component::new("idle-objects", move |stop| async move {
            let mut renewed = Duration::ZERO;
            let mut state = ObjectState::default();
            let mut gate = Some(gate);
            let reconciling = async {
                loop {
                    let now = clock.uptime();
                    let renew = now >= renewed;
                    let reconciled = self.reconcile(&writer, renew, &mut state).await;
                    match &reconciled {
                        Ok(()) if renew => renewed = now + TOKEN_LIFETIME / 2,
                        Ok(()) => {}
                        Err(error) => {
                            tracing::warn!(error = chain(error), "services cannot sleep yet");
                        }
                    }
                    let pause = if reconciled.is_ok() {
                        if let Some(gate) = gate.take() {
                            served(&writer, clock, &Key::of(&ElastiService::crd())).await;
                            drop(gate);
                        }
                        CHECK_INTERVAL
                    } else {
                        RETRY_DELAY
                    };
                    clock.sleep(pause).await;
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = reconciling => {}
            }
        })
    }

    /// Creates missing objects. With `renew`, tokens are renewed, and objects of another version or an earlier
    /// run are updated.
    async fn reconcile(
        &self,
        writer: &Writer,
        renew: bool,
        state: &mut ObjectState,
    ) -> Result<(), Error> {
        if renew || !state.defined {
            definitions::install(writer, ElastiService::crd(), state.defined).await?;
            state.defined = true;
        }
        let namespace = json!({"metadata": {"name": NAMESPACE}});
        ensure::<Namespace>(writer, &namespace).await?;
        for account in [OPERATOR, RESOLVER] {
            let object = json!({"metadata": {"name": account, "namespace": NAMESPACE}});
            let found = ensure::<ServiceAccount>(writer, &object).await?;
            let known = state.tokens.get(account);
            // A token of a deleted account of the same name is not valid for this one.
            if renew || known.is_none_or(|uid| *uid != found.metadata.uid) {
                self.write_token(writer, account).await?;
                state.tokens.insert(account, found.metadata.uid);
            }
        }
        let service = ensure::<Service>(writer, &service()).await?;
        let wanted = self.slice(&service);
        let found = ensure::<EndpointSlice>(writer, &wanted).await?;
        if renew {
            let mut slice: EndpointSlice = serde_json::from_value(wanted)?;
            if slice.endpoints != found.endpoints {
                slice.metadata = found.metadata;
                writer.replace(&slice).await?;
            }
        }
        Ok(())
    }

    async fn write_token(&self, writer: &Writer, account: &str) -> Result<(), Error> {
        let wanted =
            json!({"spec": {"audiences": [], "expirationSeconds": TOKEN_LIFETIME.as_secs()}});
        let wanted: TokenRequest = serde_json::from_value(wanted)?;
        let key = Key::new(NAMESPACE, account);
        let made: TokenRequest = writer
            .post::<ServiceAccount, _, _>(&key, "token", &wanted)
            .await?;
        let made = made.status.and_then(|status| status.token);
        let made = made.ok_or(Error::NoToken)?;
        private::write(&token(&self.tokens, account), &made)?;
        Ok(())
    }

    /// The slice is owned by the Service, so that operators use it.
    fn slice(&self, service: &Service) -> Value {
        let port = |name: &str, port: u16| json!({"name": name, "port": port, "protocol": "TCP"});
        json!({
            "metadata": {
                "name": SLICE, "namespace": NAMESPACE,
                "labels": {
                    "kubernetes.io/service-name": RESOLVER_SERVICE,
                    "endpointslice.kubernetes.io/managed-by": "neap-up",
                },
                "ownerReferences": [service.controller_owner_ref(&())],
            },
            "addressType": "IPv4",
            "ports": [port("http-resolver", INTERNAL), port("http-resolver-reverse-proxy", SHARED)],
            "endpoints": [{"addresses": [self.resolver], "conditions": {"ready": true}}],
        })
    }
}

/// A Service without a selector: the resolver is not a pod.
fn service() -> Value {
    let port = |name: &str, port: u16| json!({"name": name, "port": port, "targetPort": port});
    json!({
        "metadata": {"name": RESOLVER_SERVICE, "namespace": NAMESPACE},
        "spec": {
            "ports": [port("http-resolver", INTERNAL), port("http-resolver-reverse-proxy", SHARED)],
        },
    })
}

/// The object as the API server has it; it is created if it does not exist.
async fn ensure<K: Object + DeserializeOwned>(writer: &Writer, wanted: &Value) -> Result<K, Error> {
    let wanted: K = serde_json::from_value(wanted.clone())?;
    let key = Key::of(&wanted);
    if let Some(found) = writer.find(&key).await? {
        return Ok(found);
    }
    match writer.create(&wanted).await? {
        Some(made) => Ok(made),
        // Another process created it meanwhile.
        None => writer.find(&key).await?.ok_or(Error::Deleted),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    use kube::{Api, Client, api::DeleteParams};
    use neap_kit::{clock::Clock, lease::Leadership};
    use neap_pocket::{Options, Pocket, environment::Environment};

    use super::*;

    struct TestServer {
        client: Client,
        writer: Writer,
        objects: InstalledObjects,
        folder: tempfile::TempDir,
        _pocket: Pocket,
    }

    async fn server() -> TestServer {
        let pocket = Pocket::open(Options::new(Environment::simulated(7)));
        let pocket = pocket.await.unwrap();
        let client = Client::new(pocket.service(), "default");
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let folder = tempfile::tempdir().unwrap();
        TestServer {
            writer: Writer::new(
                client.clone(),
                "t",
                Leadership::without_election(clock),
                clock,
            ),
            objects: InstalledObjects {
                resolver: "10.0.0.2".parse().unwrap(),
                tokens: folder.path().to_owned(),
            },
            client,
            folder,
            _pocket: pocket,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_deleted_definition_is_created_again_only_with_the_next_start() {
        let TestServer {
            client,
            writer,
            objects,
            ..
        } = &server().await;
        let mut state = ObjectState::default();
        objects.reconcile(writer, true, &mut state).await.unwrap();
        let kinds: Api<CustomResourceDefinition> = Api::all(client.clone());
        let name = ElastiService::crd_name();
        let parameters = DeleteParams::default();
        kinds.delete(name, &parameters).await.unwrap();
        for renew in [false, true] {
            objects.reconcile(writer, renew, &mut state).await.unwrap();
            assert!(kinds.get_opt(name).await.unwrap().is_none());
        }
        objects
            .reconcile(writer, true, &mut ObjectState::default())
            .await
            .unwrap();
        assert!(kinds.get_opt(name).await.unwrap().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_recreated_account_gets_a_token_at_once() {
        let TestServer {
            client,
            writer,
            objects,
            folder,
            ..
        } = &server().await;
        let mut state = ObjectState::default();
        let shown = || std::fs::read_to_string(token(folder.path(), RESOLVER)).unwrap();
        objects.reconcile(writer, true, &mut state).await.unwrap();
        let first = shown();
        objects.reconcile(writer, false, &mut state).await.unwrap();
        assert_eq!(shown(), first);
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
        let parameters = DeleteParams::default();
        accounts.delete(RESOLVER, &parameters).await.unwrap();
        objects.reconcile(writer, false, &mut state).await.unwrap();
        assert_ne!(shown(), first);
    }
}
