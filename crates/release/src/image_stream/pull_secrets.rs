//! The pull secrets of namespaces.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, api::ListParams};
use neap_kit::clock::{Clock, Uptime};
use parking_lot::Mutex;

use crate::oci::{client::RegistryClient, credentials::Credentials};

/// How long secrets are not read again. They are not watched: this process holds only those that it needs.
const LIFETIME: Duration = Duration::from_mins(1);
const DOCKER_CONFIG_JSON: &str = "kubernetes.io/dockerconfigjson";
const DOCKER_CONFIG: &str = "kubernetes.io/dockercfg";
/// Secrets in one page of a list.
const PAGE: u32 = 100;
/// Secrets of a namespace and a type that are used. More would only fill the memory.
const MAX_SECRETS: usize = 1000;
/// After this time without an import, a namespace and its tokens are forgotten.
const UNUSED: Duration = Duration::from_hours(1);

/// Clients with the credentials of the namespace for which they ask.
#[derive(Debug)]
pub struct PullSecrets {
    base: RegistryClient,
    clock: Clock,
    by_namespace: Mutex<BTreeMap<String, Cached>>,
}

#[derive(Debug, Clone)]
struct Cached {
    credentials: Credentials,
    client: RegistryClient,
    read_at: Uptime,
}

impl PullSecrets {
    /// Clients like `base`, whose own credentials are used where a namespace has none.
    pub fn new(base: RegistryClient, clock: Clock) -> Self {
        Self {
            base,
            clock,
            by_namespace: Mutex::default(),
        }
    }

    /// The client for images of streams in `namespace`. Tokens are kept while the secrets stay the same.
    pub async fn client(
        &self,
        api: &Client,
        namespace: &str,
    ) -> Result<RegistryClient, kube::Error> {
        let now = self.clock.uptime();
        let cached = self.by_namespace.lock().get(namespace).cloned();
        if let Some(cached) = cached.as_ref().filter(|it| now < it.read_at + LIFETIME) {
            return Ok(cached.client.clone());
        }
        let credentials = read(api, namespace).await?;
        let client = match cached {
            Some(cached) if cached.credentials == credentials => cached.client,
            _ if credentials.is_empty() => self.base.clone(),
            _ => self.base.with_first_credentials(credentials.clone()),
        };
        let entry = Cached {
            credentials,
            client: client.clone(),
            read_at: now,
        };
        let mut by_namespace = self.by_namespace.lock();
        by_namespace.retain(|_, it| now < it.read_at + UNUSED);
        by_namespace.insert(namespace.to_owned(), entry);
        Ok(client)
    }
}

/// The pull secrets of a namespace, in the order of their names.
async fn read(api: &Client, namespace: &str) -> Result<Credentials, kube::Error> {
    let secrets: Api<Secret> = Api::namespaced(api.clone(), namespace);
    let mut credentials = Credentials::none();
    for kind in [DOCKER_CONFIG_JSON, DOCKER_CONFIG] {
        for secret in of_type(&secrets, kind).await? {
            match parse(&secret) {
                Some(Ok(found)) => credentials = credentials.then(found),
                Some(Err(error)) => {
                    let name = secret.metadata.name.as_deref().unwrap_or_default();
                    tracing::warn!(namespace, name, %error, "a pull secret is not used");
                }
                None => {}
            }
        }
    }
    Ok(credentials)
}

/// The secrets of a type, page by page.
async fn of_type(secrets: &Api<Secret>, kind: &str) -> Result<Vec<Secret>, kube::Error> {
    let mut page = ListParams::default()
        .fields(&format!("type={kind}"))
        .limit(PAGE);
    let mut all = Vec::new();
    loop {
        let list = secrets.list(&page).await?;
        all.extend(list.items);
        let next = list.metadata.continue_.filter(|token| !token.is_empty());
        let Some(token) = next else {
            return Ok(all);
        };
        if all.len() >= MAX_SECRETS {
            tracing::warn!(kind, used = all.len(), "further pull secrets are not used");
            return Ok(all);
        }
        page = page.continue_token(&token);
    }
}

/// The credentials of a pull secret; none if it is another kind of secret.
pub fn parse(secret: &Secret) -> Option<Result<Credentials, crate::oci::credentials::Error>> {
    let data = secret.data.as_ref()?;
    let text = |key: &str| Some(String::from_utf8_lossy(&data.get(key)?.0).into_owned());
    match secret.type_.as_deref()? {
        DOCKER_CONFIG_JSON => text(".dockerconfigjson").map(|text| Credentials::parse(&text)),
        DOCKER_CONFIG => text(".dockercfg").map(|text| Credentials::parse_old(&text)),
        _ => None,
    }
}
