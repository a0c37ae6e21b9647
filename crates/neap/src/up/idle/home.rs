//! What operator and resolver need of the API: that their kind is served, who they are, and where the
//! resolver is. In a cluster the manifests of deploy/idle make all of it.

use std::{collections::BTreeMap, net::IpAddr, path::PathBuf, time::Duration};

use k8s_openapi::{
    api::{
        authentication::v1::TokenRequest,
        core::v1::{Namespace, Service as KubeService, ServiceAccount},
        discovery::v1::EndpointSlice,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{CustomResourceExt, Resource};
use neap_idle::api::ElastiService;
use neap_kit::{
    apply::{self, Hand, Object},
    key::Key,
    manager::Service,
    site::Site,
    why::chain,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{INTERNAL, NAMESPACE, OPERATOR, RESOLVER, RESOLVER_SERVICE, SHARED, token};
use crate::up::private;

/// The slice that says where the resolver is.
const SLICE: &str = "elasti-resolver-service-neap";
/// So long a token is good for.
const LASTS: Duration = Duration::from_hours(24);
/// So often all of it is looked at: a user may have removed something.
const AGAIN: Duration = Duration::from_secs(30);
/// So soon after something failed.
const SOON: Duration = Duration::from_millis(500);

/// Keeps the objects, and the tokens in files.
pub(super) struct Home {
    /// The address of the resolver.
    pub(super) resolver: IpAddr,
    /// The folder of the tokens.
    pub(super) tokens: PathBuf,
}

/// What was done since this process began.
#[derive(Default)]
struct Done {
    /// The kind was served. Whoever takes it away after that means it, as `neap idle uninstall` does;
    /// the next start has it again.
    defined: bool,
    /// For which account of a name a token was last written.
    tokens: BTreeMap<&'static str, Option<String>>,
}

/// Why something is not there yet.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Api(#[from] apply::Error),
    #[error("what was written here is no such object")]
    Object(#[from] serde_json::Error),
    #[error("a token cannot be written down")]
    Token(#[from] std::io::Error),
    #[error("the server made no token")]
    NoToken,
    #[error("somebody removed what was just made")]
    Gone,
}

impl Home {
    pub(super) fn service(self, site: &Site) -> Service {
        let (hand, clock) = (site.hand("neap-up"), site.clock);
        Service::new("idle-home", move |stop| async move {
            let mut renewed = Duration::ZERO;
            let mut done = Done::default();
            let kept = async {
                loop {
                    let now = clock.uptime();
                    let renew = now >= renewed;
                    let kept = self.keep(&hand, renew, &mut done).await;
                    match &kept {
                        Ok(()) if renew => renewed = now + LASTS / 2,
                        Ok(()) => {}
                        Err(error) => {
                            tracing::warn!(error = chain(error), "services cannot sleep yet");
                        }
                    }
                    let pause = if kept.is_ok() { AGAIN } else { SOON };
                    clock.sleep(pause).await;
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = kept => {}
            }
        })
    }

    /// Makes what is not there. To `renew` means new tokens, and that what another version or another
    /// run made is as it should be now.
    async fn keep(&self, hand: &Hand, renew: bool, done: &mut Done) -> Result<(), Error> {
        if renew || !done.defined {
            define(hand, done.defined).await?;
            done.defined = true;
        }
        let namespace = json!({"metadata": {"name": NAMESPACE}});
        ensure::<Namespace>(hand, &namespace).await?;
        for account in [OPERATOR, RESOLVER] {
            let object = json!({"metadata": {"name": account, "namespace": NAMESPACE}});
            let found = ensure::<ServiceAccount>(hand, &object).await?;
            let known = done.tokens.get(account);
            // What another one of the same name had is worth nothing to this one.
            if renew || known.is_none_or(|uid| *uid != found.metadata.uid) {
                self.write_token(hand, account).await?;
                done.tokens.insert(account, found.metadata.uid);
            }
        }
        let service = ensure::<KubeService>(hand, &service()).await?;
        let wanted = self.slice(&service);
        let found = ensure::<EndpointSlice>(hand, &wanted).await?;
        if renew {
            let mut slice: EndpointSlice = serde_json::from_value(wanted)?;
            if slice.endpoints != found.endpoints {
                slice.metadata = found.metadata;
                hand.replace(&slice).await?;
            }
        }
        Ok(())
    }

    async fn write_token(&self, hand: &Hand, account: &str) -> Result<(), Error> {
        let wanted = json!({"spec": {"audiences": [], "expirationSeconds": LASTS.as_secs()}});
        let wanted: TokenRequest = serde_json::from_value(wanted)?;
        let key = Key::new(NAMESPACE, account);
        let made: TokenRequest = hand
            .post::<ServiceAccount, _, _>(&key, "token", &wanted)
            .await?;
        let made = made.status.and_then(|status| status.token);
        let made = made.ok_or(Error::NoToken)?;
        private::write(&token(&self.tokens, account), &made)?;
        Ok(())
    }

    /// Belongs to the Service, so that it is taken for its own.
    fn slice(&self, service: &KubeService) -> Value {
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

/// Has the kind served, as this version knows it. One that `was` there and is not was taken away.
async fn define(hand: &Hand, was: bool) -> Result<(), Error> {
    let mut wanted = ElastiService::crd();
    let key = Key::of(&wanted);
    match hand.find::<CustomResourceDefinition>(&key).await? {
        Some(found) if found.spec.versions != wanted.spec.versions => {
            wanted.metadata = found.metadata;
            hand.replace(&wanted).await?;
        }
        None if !was => {
            hand.create(&wanted).await?;
        }
        _ => {}
    }
    Ok(())
}

/// What selects no pods: the resolver is none.
fn service() -> Value {
    let port = |name: &str, port: u16| json!({"name": name, "port": port, "targetPort": port});
    json!({
        "metadata": {"name": RESOLVER_SERVICE, "namespace": NAMESPACE},
        "spec": {
            "ports": [port("http-resolver", INTERNAL), port("http-resolver-reverse-proxy", SHARED)],
        },
    })
}

/// The object as the server has it, made if it was not there.
async fn ensure<K: Object + DeserializeOwned>(hand: &Hand, wanted: &Value) -> Result<K, Error> {
    let wanted: K = serde_json::from_value(wanted.clone())?;
    let key = Key::of(&wanted);
    if let Some(found) = hand.find(&key).await? {
        return Ok(found);
    }
    match hand.create(&wanted).await? {
        Some(made) => Ok(made),
        // Somebody else was quicker.
        None => hand.find(&key).await?.ok_or(Error::Gone),
    }
}

#[cfg(test)]
mod tests {
    use kube::{Api, Client, api::DeleteParams};
    use neap_kit::{clock::Clock, lease::Leadership};
    use neap_pocket::{Options, Pocket, environment::Environment};

    use super::*;

    struct Stage {
        client: Client,
        hand: Hand,
        home: Home,
        folder: tempfile::TempDir,
        _pocket: Pocket,
    }

    async fn stage() -> Stage {
        let pocket = Pocket::open(Options::new(Environment::rehearsal(7)));
        let pocket = pocket.await.unwrap();
        let client = Client::new(pocket.service(), "default");
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let folder = tempfile::tempdir().unwrap();
        Stage {
            hand: Hand::new(client.clone(), "t", Leadership::alone(clock), clock),
            home: Home {
                resolver: "10.0.0.2".parse().unwrap(),
                tokens: folder.path().to_owned(),
            },
            client,
            folder,
            _pocket: pocket,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_kind_that_was_taken_away_comes_back_with_the_next_start_and_not_before() {
        let Stage {
            client, hand, home, ..
        } = &stage().await;
        let mut done = Done::default();
        home.keep(hand, true, &mut done).await.unwrap();
        let kinds: Api<CustomResourceDefinition> = Api::all(client.clone());
        let name = ElastiService::crd_name();
        let parameters = DeleteParams::default();
        kinds.delete(name, &parameters).await.unwrap();
        for renew in [false, true] {
            home.keep(hand, renew, &mut done).await.unwrap();
            assert!(kinds.get_opt(name).await.unwrap().is_none());
        }
        home.keep(hand, true, &mut Done::default()).await.unwrap();
        assert!(kinds.get_opt(name).await.unwrap().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn an_account_that_was_made_anew_gets_a_token_at_once() {
        let Stage {
            client,
            hand,
            home,
            folder,
            ..
        } = &stage().await;
        let mut done = Done::default();
        let shown = || std::fs::read_to_string(token(folder.path(), RESOLVER)).unwrap();
        home.keep(hand, true, &mut done).await.unwrap();
        let first = shown();
        home.keep(hand, false, &mut done).await.unwrap();
        assert_eq!(shown(), first);
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
        let parameters = DeleteParams::default();
        accounts.delete(RESOLVER, &parameters).await.unwrap();
        home.keep(hand, false, &mut done).await.unwrap();
        assert_ne!(shown(), first);
    }
}
