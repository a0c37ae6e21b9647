//! A client for registries, by the OCI distribution specification.
//!
//! It is made of one [`neap_kit::client::Client`], which carries deadlines, retries, circuits, proxies and the
//! faults of tests. What is added here is what registries are about: who may ask for what, digests, uploads.
//!
//! Credentials are sent to the host that they belong to, and to the token service that this host names; never
//! to a host that a redirect or an upload location leads to.

mod auth;
mod blob;
mod error;
mod pull;
mod push;
mod requests;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, StatusCode, Uri};
use neap_kit::{
    client::{Client, RequestBuilder, Response},
    clock::Clock,
};
use parking_lot::Mutex;

pub use self::{
    auth::Access,
    blob::{BlobSource, BlobStream},
    error::{Error, What},
    pull::Found,
    requests::RequestCount,
};
use self::{
    auth::{Authorization, TokenCache},
    requests::Limits,
};
use super::{
    challenge::{self, Challenge},
    content_cache::ContentCache,
    credentials::Credentials,
    digest::Digest,
    reference::{Endpoint, ImageRef},
};

/// Requests to one registry at a time, and blobs.
const MAX_PER_REGISTRY: usize = 6;
/// The time for requests without a large body.
const DEADLINE: Duration = Duration::from_mins(1);
/// Registries whose scheme and challenge are remembered.
const MAX_HOSTS: usize = 1000;
/// How long they are remembered.
const HOST_LIFETIME: Duration = Duration::from_mins(30);

/// How registries are spoken to.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whether plain HTTP, and certificates that are not trusted, are accepted.
    pub insecure: bool,
    /// Requests to one registry at a time that wait for their answer, and blobs of all registries that are
    /// transferred at a time.
    pub max_per_registry: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            insecure: false,
            max_per_registry: MAX_PER_REGISTRY,
        }
    }
}

/// A client for registries. Cheap to clone; clones share tokens and limits.
#[derive(Clone)]
pub struct RegistryClient {
    http: Client,
    credentials: Arc<Credentials>,
    options: Options,
    cache: Option<ContentCache>,
    shared: Arc<Shared>,
    limits: Arc<Limits>,
    retries: bool,
    sent: RequestCount,
}

#[derive(Default)]
struct Shared {
    hosts: Mutex<BTreeMap<(String, bool), Host>>,
    tokens: TokenCache,
}

/// What is known about a registry.
#[derive(Debug, Clone)]
struct Host {
    scheme: &'static str,
    challenge: Option<Challenge>,
    learned_at: Duration,
}

impl fmt::Debug for RegistryClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryClient")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl RegistryClient {
    /// A client that sends its requests through `http`.
    pub fn new(http: Client, credentials: Credentials, options: Options) -> Self {
        Self {
            http,
            credentials: Arc::new(credentials),
            limits: Arc::new(Limits::new(options.max_per_registry)),
            options,
            cache: None,
            shared: Arc::default(),
            retries: true,
            sent: RequestCount::default(),
        }
    }

    /// The same client, which does not ask for content that is in `cache`, and keeps there what it reads by
    /// digest.
    pub fn with_cache(&self, cache: ContentCache) -> Self {
        Self {
            cache: Some(cache),
            ..self.clone()
        }
    }

    fn cached(&self, digest: &Digest, limit: u64) -> Option<Bytes> {
        self.cache.as_ref()?.get(digest, limit)
    }

    fn keep(&self, digest: &Digest, content: &[u8]) {
        if let Some(cache) = &self.cache {
            cache.put(digest, content);
        }
    }

    /// The same client with other credentials. Tokens are not shared with the first, and limits are.
    pub fn with_credentials(&self, credentials: Credentials) -> Self {
        let shared = Shared {
            hosts: Mutex::new(self.shared.hosts.lock().clone()),
            ..Shared::default()
        };
        Self {
            credentials: Arc::new(credentials),
            shared: Arc::new(shared),
            ..self.clone()
        }
    }

    /// The same client, which uses its own credentials only where `first` has none.
    pub fn with_first_credentials(&self, first: Credentials) -> Self {
        self.with_credentials(first.then((*self.credentials).clone()))
    }

    /// The error about an image that does not exist.
    pub fn absent(&self, image: &ImageRef) -> Error {
        Error::not_found(image, What::Manifest)
    }

    /// The same client, which accepts plain HTTP and any certificate.
    pub fn insecure(&self, insecure: bool) -> Self {
        let options = Options {
            insecure: insecure || self.options.insecure,
            ..self.options.clone()
        };
        Self {
            options,
            ..self.clone()
        }
    }

    /// The client that carries the requests, for what lies beside the registries.
    pub fn http(&self) -> &Client {
        &self.http
    }

    /// The clock of the calls.
    pub fn clock(&self) -> Clock {
        self.http.clock()
    }

    /// The most requests to one registry, and the most transfers of blobs, at a time.
    pub fn parallelism(&self) -> usize {
        self.options.max_per_registry.max(1)
    }

    /// How a registry is spoken to: asked once, and then remembered for some time.
    async fn host(&self, image: &ImageRef, endpoint: &Endpoint) -> Result<Host, Error> {
        let key = (endpoint.host.clone(), self.options.insecure);
        let now = self.clock().uptime();
        let known = self.shared.hosts.lock().get(&key).cloned();
        if let Some(known) = known.filter(|it| now < it.learned_at + HOST_LIFETIME) {
            return Ok(known);
        }
        let schemes: &[&'static str] = match (is_loopback(&endpoint.host), self.options.insecure) {
            (true, _) => &["http", "https"],
            (false, true) => &["https", "http"],
            (false, false) => &["https"],
        };
        let mut failure = None;
        for scheme in schemes {
            match self.ping(image, endpoint, scheme).await {
                Ok(host) => {
                    let mut hosts = self.shared.hosts.lock();
                    if hosts.len() >= MAX_HOSTS {
                        hosts.clear();
                    }
                    hosts.insert(key, host.clone());
                    return Ok(host);
                }
                Err(error) => {
                    let other_scheme = error.may_be_another_scheme();
                    failure = failure.or(Some(error));
                    if !other_scheme {
                        break;
                    }
                }
            }
        }
        Err(failure.unwrap_or_else(|| Error::not_found(image, What::Registry)))
    }

    async fn ping(
        &self,
        image: &ImageRef,
        endpoint: &Endpoint,
        scheme: &'static str,
    ) -> Result<Host, Error> {
        let address = format!("{scheme}://{}/v2/", endpoint.host);
        let request = self.http.get(&address).deadline(DEADLINE);
        let response = self.issue(request).await;
        let response = response.map_err(|error| Error::call(image, What::Registry, error))?;
        let challenge = match response.status() {
            StatusCode::UNAUTHORIZED => {
                let headers = response.headers().get_all(http::header::WWW_AUTHENTICATE);
                challenge::parse(headers.iter().filter_map(|it| it.to_str().ok()))
            }
            // Some registries answer the question for their version with "not found" and serve images.
            StatusCode::OK | StatusCode::NOT_FOUND | StatusCode::FORBIDDEN => None,
            _ => {
                let failed = response.success().await;
                return match failed {
                    Ok(_) => Ok(Host {
                        scheme,
                        challenge: None,
                        learned_at: self.clock().uptime(),
                    }),
                    Err(error) => Err(Error::call(image, What::Registry, error)),
                };
            }
        };
        Ok(Host {
            scheme,
            challenge,
            learned_at: self.clock().uptime(),
        })
    }

    /// The address of a part of a repository, such as `manifests/latest`.
    fn address(host: &Host, endpoint: &Endpoint, path: &str) -> String {
        format!(
            "{}://{}/v2/{}/{path}",
            host.scheme, endpoint.host, endpoint.repository
        )
    }

    /// Sends what `make` puts together, authorized for `access`; again with a new token if the registry asks
    /// for one.
    async fn send(
        &self,
        image: &ImageRef,
        what: What,
        access: &Access,
        make: impl Fn(&Client, &str) -> RequestBuilder,
        path: &str,
    ) -> Result<Response, Error> {
        let endpoint = image.endpoint();
        let host = self.host(image, &endpoint).await?;
        let address = Self::address(&host, &endpoint, path);
        self.send_to(image, what, access, &address, |http| make(http, &address))
            .await
    }

    /// The same for an address that the registry gave, such as that of an upload.
    async fn send_to(
        &self,
        image: &ImageRef,
        what: What,
        access: &Access,
        address: &str,
        make: impl Fn(&Client) -> RequestBuilder,
    ) -> Result<Response, Error> {
        let endpoint = image.endpoint();
        let host = self.host(image, &endpoint).await?;
        let same_origin =
            origin_of(address) == Some((host.scheme.to_owned(), endpoint.host.clone()));
        let mut authorization = match (&host.challenge, same_origin) {
            (Some(challenge), true) => {
                self.authorization(image, &endpoint, &host, challenge, access, false)
                    .await?
            }
            _ => Authorization::None,
        };
        let mut renewed = false;
        loop {
            let request = authorization.apply(make(&self.http));
            let places = self.limits.of(&endpoint.host);
            let response = {
                let _place = places.acquire().await.ok();
                self.issue(request).await
            };
            let response = response.map_err(|error| Error::call(image, what.clone(), error))?;
            if response.status() != StatusCode::UNAUTHORIZED || !same_origin || renewed {
                return Ok(response);
            }
            let headers = response.headers().get_all(http::header::WWW_AUTHENTICATE);
            let asked = challenge::parse(headers.iter().filter_map(|it| it.to_str().ok()));
            let Some(asked) = asked else {
                return Ok(response);
            };
            authorization = self
                .authorization(image, &endpoint, &host, &asked, access, true)
                .await?;
            renewed = true;
        }
    }

    /// The response if it is a success, or the error that it stands for.
    async fn checked(
        &self,
        image: &ImageRef,
        what: What,
        response: Response,
    ) -> Result<Response, Error> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let helper = self.credentials.helper(image.registry()).map(str::to_owned);
        match response.success().await {
            Ok(response) => Ok(response),
            Err(error) => Err(Error::answered(image, what, error, helper)),
        }
    }

    fn request(http: &Client, method: &Method, address: &str) -> RequestBuilder {
        http.request(method.clone(), address).deadline(DEADLINE)
    }
}

/// Whether a host is this machine, where registries rarely have certificates.
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let address = name.parse::<std::net::IpAddr>();
    name == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Scheme, and host with its port.
fn origin_of(address: &str) -> Option<(String, String)> {
    let uri: Uri = address.parse().ok()?;
    let authority = uri.authority()?.as_str().to_owned();
    Some((uri.scheme_str()?.to_owned(), authority))
}
