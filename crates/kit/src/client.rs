//! Calls systems outside the cluster over HTTP: one client for all areas.
//!
//! A call has a deadline. Attempts that fail are repeated as a [`RetryPolicy`] says, which is a value
//! with a pure decision; a budget bounds the repetitions of all calls to a host, and a circuit stops
//! the calls to a host that keeps failing. Redirects are followed without credentials to another host.
//! Bodies are bounded, or streamed in both directions. Logs and errors show no header and no query.
//!
//! What carries the requests is a [`Transport`]: sockets by default, with proxies and certificate
//! authorities; in tests, a system in memory, with or without injected faults.
//!
//! ```
//! use std::time::Duration;
//!
//! use http::{Request, Response, StatusCode};
//! use neap_kit::{
//!     client::{Body, Client, TransportError, transport_fn},
//!     clock::Clock,
//! };
//!
//! # #[derive(serde::Deserialize)]
//! # struct Tags { tags: Vec<String> }
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! // In a program: Client::builder("registry", clock).build()?, which uses sockets.
//! let registry = transport_fn(|request: Request<Body>| async move {
//!     let path = request.uri().path().to_owned();
//!     let mut response = Response::new(Body::from(r#"{"tags": ["4.18.0", "4.18.1"]}"#));
//!     if path != "/v2/ocp/release/tags/list" {
//!         *response.status_mut() = StatusCode::NOT_FOUND;
//!     }
//!     Ok::<_, TransportError>(response)
//! });
//! let client = Client::builder("registry", Clock::system())
//!     .transport(registry)
//!     .build()?;
//!
//! let response = client
//!     .get("https://registry.example.com/v2/ocp/release/tags/list")
//!     .bearer("secret")
//!     .deadline(Duration::from_secs(20))
//!     .fetch(1 << 20) // reads at most 1 MiB, and retries also a body that breaks off
//!     .await?
//!     .success()?;
//! let tags: Tags = response.json()?;
//! assert_eq!(tags.tags, ["4.18.0", "4.18.1"]);
//!
//! let missing = client.get("https://registry.example.com/v2/other").send().await?;
//! assert_eq!(missing.status(), StatusCode::NOT_FOUND);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

mod body;
mod budget;
mod circuit;
mod connector;
mod error;
mod exchange;
mod fault;
mod hosts;
mod proxies;
mod redirect;
mod request;
mod response;
mod retry;
#[cfg(test)]
mod tests;
mod transport;
mod trust;

use std::{
    fmt,
    hash::RandomState,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use http::{HeaderMap, HeaderValue, Method, Request, header::USER_AGENT};
use tower::{service_fn, util::BoxCloneSyncService};

use self::hosts::Hosts;
pub use self::{
    body::{Body, ReadError},
    budget::BudgetPolicy,
    circuit::CircuitPolicy,
    error::{Error, TransportError},
    fault::{Fault, Refusal},
    proxies::Proxies,
    redirect::{RedirectRefusal, Redirects, resolve},
    request::{RequestBuilder, percent_encoded, redacted},
    response::{Fetched, Response},
    retry::{Attempt, AttemptResult, Decision, FinalReason, RetryPolicy, retry_after},
    transport::Transport,
    trust::{Trust, TrustError},
};
use crate::{clock::Clock, telemetry::Telemetry};

/// The time that a call has, unless it says otherwise.
const DEADLINE: Duration = Duration::from_mins(1);
/// The longest time between two parts of the body of a response.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
const PRODUCT: &str = concat!("neaptide/", env!("CARGO_PKG_VERSION"));

/// An HTTP client. Cheap to clone; clones share circuits, budgets and connections.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    transport: Transport,
}

struct Shared {
    name: &'static str,
    clock: Clock,
    telemetry: Telemetry,
    hosts: Hosts,
    retry: RetryPolicy,
    deadline: Duration,
    idle_timeout: Duration,
    headers: HeaderMap,
    seed: RandomState,
    calls: AtomicU64,
}

impl Client {
    /// A client with this name in metrics and logs.
    pub fn builder(name: &'static str, clock: Clock) -> ClientBuilder {
        ClientBuilder {
            name,
            clock,
            telemetry: None,
            transport: None,
            trust: Trust::default(),
            proxies: None,
            retry: RetryPolicy::default(),
            circuit: CircuitPolicy::default(),
            budget: BudgetPolicy::default(),
            deadline: DEADLINE,
            idle_timeout: IDLE_TIMEOUT,
            user_agent: None,
        }
    }

    /// A request for `address`, which begins with `http://` or `https://`.
    pub fn request(&self, method: Method, address: impl AsRef<str>) -> RequestBuilder {
        RequestBuilder::new(self.clone(), method, address.as_ref())
    }

    /// A GET request.
    pub fn get(&self, address: impl AsRef<str>) -> RequestBuilder {
        self.request(Method::GET, address)
    }

    /// A HEAD request.
    pub fn head(&self, address: impl AsRef<str>) -> RequestBuilder {
        self.request(Method::HEAD, address)
    }

    /// A POST request.
    pub fn post(&self, address: impl AsRef<str>) -> RequestBuilder {
        self.request(Method::POST, address)
    }

    /// A PUT request.
    pub fn put(&self, address: impl AsRef<str>) -> RequestBuilder {
        self.request(Method::PUT, address)
    }

    /// A PATCH request.
    pub fn patch(&self, address: impl AsRef<str>) -> RequestBuilder {
        self.request(Method::PATCH, address)
    }

    /// A DELETE request.
    pub fn delete(&self, address: impl AsRef<str>) -> RequestBuilder {
        self.request(Method::DELETE, address)
    }

    /// The clock that bounds the calls.
    pub fn clock(&self) -> Clock {
        self.shared.clock
    }

    fn name(&self) -> &'static str {
        self.shared.name
    }

    fn telemetry(&self) -> &Telemetry {
        &self.shared.telemetry
    }

    fn hosts(&self) -> &Hosts {
        &self.shared.hosts
    }

    fn retry_policy(&self) -> &RetryPolicy {
        &self.shared.retry
    }

    fn deadline(&self) -> Duration {
        self.shared.deadline
    }

    fn idle_timeout(&self) -> Duration {
        self.shared.idle_timeout
    }

    fn default_headers(&self) -> HeaderMap {
        self.shared.headers.clone()
    }

    fn transport(&self) -> Transport {
        self.transport.clone()
    }

    fn seed(&self) -> &RandomState {
        &self.shared.seed
    }

    fn next_call(&self) -> u64 {
        self.shared.calls.fetch_add(1, Ordering::Relaxed)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("name", &self.shared.name)
            .finish_non_exhaustive()
    }
}

/// A client that is being put together.
#[must_use = "a builder does nothing unless it builds"]
pub struct ClientBuilder {
    name: &'static str,
    clock: Clock,
    telemetry: Option<Telemetry>,
    transport: Option<Transport>,
    trust: Trust,
    proxies: Option<Proxies>,
    retry: RetryPolicy,
    circuit: CircuitPolicy,
    budget: BudgetPolicy,
    deadline: Duration,
    idle_timeout: Duration,
    user_agent: Option<HeaderValue>,
}

impl ClientBuilder {
    /// Counts the calls there.
    pub fn telemetry(mut self, telemetry: Telemetry) -> Self {
        self.telemetry = Some(telemetry);
        self
    }

    /// Carries requests in another way than through sockets. Certificates and proxies are then the
    /// business of the transport.
    pub fn transport(mut self, transport: Transport) -> Self {
        self.transport = Some(transport);
        self
    }

    /// Which servers are trusted; without this, those with a certificate that the machine trusts.
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// Which calls go through a proxy; without this, what the environment says.
    pub fn proxies(mut self, proxies: Proxies) -> Self {
        self.proxies = Some(proxies);
        self
    }

    /// Which attempts are repeated.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// When a host is no longer called.
    pub fn circuit(mut self, policy: CircuitPolicy) -> Self {
        self.circuit = policy;
        self
    }

    /// How many repetitions a host may be sent.
    pub fn budget(mut self, policy: BudgetPolicy) -> Self {
        self.budget = policy;
        self
    }

    /// The time that each call has, unless it says otherwise.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// The longest time between two parts of the body of a response.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// Another User-Agent than that of this program.
    pub fn user_agent(mut self, agent: HeaderValue) -> Self {
        self.user_agent = Some(agent);
        self
    }

    /// The client. Fails if the certificates in its [`Trust`] cannot be used.
    pub fn build(self) -> Result<Client, TrustError> {
        let transport = if let Some(transport) = self.transport {
            transport
        } else {
            let proxies = self.proxies.unwrap_or_else(Proxies::from_environment);
            Transport::new(transport::Sockets::new(self.trust, proxies)?)
        };
        let mut headers = HeaderMap::new();
        let product = HeaderValue::from_static(PRODUCT);
        headers.insert(USER_AGENT, self.user_agent.unwrap_or(product));
        let shared = Shared {
            name: self.name,
            clock: self.clock,
            telemetry: self.telemetry.unwrap_or_default(),
            hosts: Hosts::new(self.clock, self.circuit, self.budget),
            retry: self.retry,
            deadline: self.deadline,
            idle_timeout: self.idle_timeout,
            headers,
            seed: RandomState::new(),
            calls: AtomicU64::new(0),
        };
        Ok(Client {
            shared: Arc::new(shared),
            transport,
        })
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A transport from a function: a system that a test writes in place.
pub fn transport_fn<F, T>(carry: F) -> Transport
where
    F: FnMut(Request<Body>) -> T + Clone + Send + Sync + 'static,
    T: Future<Output = Result<http::Response<Body>, TransportError>> + Send + 'static,
{
    BoxCloneSyncService::new(service_fn(carry))
}
