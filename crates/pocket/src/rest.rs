//! The generic REST machine: every verb for every kind, driven by a table.
//!
//! A [`Machine`] takes a parsed [`Request`] and returns a [`Reply`]; it depends neither on HTTP
//! bodies nor on single kinds. What differs between kinds is in the [`registry`]: a schema, rules
//! and traits.

pub(crate) mod admission;
mod apply;
mod bearer_token;
mod bootstrap;
mod bulk;
mod create;
mod delete;
mod escalation;
mod hidden_parts;
mod incoming;
mod list;
mod metadata;
mod namespace;
mod own;
mod ownership;
mod patch;
pub mod registry;
pub(crate) mod reply;
mod report;
mod request;
mod selection;
mod special;
mod turns;
mod update;
mod watch;

use std::{fmt, sync::Arc};

use crate::{
    access::Authorizer,
    admission::{Dial, Tcp, WebhookClient, Webhooks},
    environment::Environment,
    identity::{AccountTokens, Authenticate, ISSUER},
    kinds::Settings,
    status::{ApiError, Result},
    store::{self, Head, Object, View},
};

pub use crate::identity::User;
pub use incoming::Payload;
pub use registry::{Registry, Served};
pub use reply::{ObjectForm, Presentation, Reply, ReplyBody};
pub use request::{Request, Target, Verb};

pub(crate) use admission::QUOTAS;
pub(crate) use bulk::Bulk;
pub(crate) use delete::{DeleteOptions, FOREGROUND, ORPHAN, Propagation};
pub(crate) use request::{is_yes, path};
pub(crate) use turns::Turn;
use turns::Turns;

/// The server behind the wire: a view of the store and the table of served resources.
#[derive(Clone)]
pub struct Machine {
    pub(crate) environment: Environment,
    pub(crate) view: View,
    pub(crate) registry: Arc<Registry>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) runtime: Option<Arc<dyn crate::runtime::PodRuntime>>,
    /// Authorization.
    pub(crate) access: Authorizer,
    /// The certificate authority, in PEM, that is published in every namespace.
    root_ca: Option<Arc<str>>,
    /// The registered webhooks.
    pub(crate) hooks: Arc<Webhooks>,
    /// Calls the webhooks.
    pub(crate) webhook_client: Arc<WebhookClient>,
    /// Serializes writes of resources that allocate something.
    turns: Arc<Turns>,
    /// Turns for work on many objects.
    pub(crate) bulk: Bulk,
    /// Issues and verifies service account tokens.
    pub(crate) accounts: Arc<AccountTokens>,
    /// Verifies all other credentials.
    pub(crate) authenticator: Option<Arc<dyn Authenticate>>,
}

impl Machine {
    /// A machine over `view`.
    pub fn new(
        environment: Environment,
        view: View,
        registry: Arc<Registry>,
        settings: Settings,
    ) -> Self {
        let webhook_client = WebhookClient::new(environment.clone(), Arc::new(Tcp));
        Self {
            hooks: Arc::default(),
            webhook_client: Arc::new(webhook_client),
            environment,
            view,
            registry,
            settings: Arc::new(settings),
            runtime: None,
            access: Authorizer::default(),
            root_ca: None,
            turns: Arc::default(),
            bulk: Bulk::new(),
            accounts: Arc::new(AccountTokens::new(ISSUER.into(), None)),
            authenticator: None,
        }
    }

    /// The same machine with a pod runtime.
    #[must_use]
    pub fn with_runtime(self, runtime: Option<Arc<dyn crate::runtime::PodRuntime>>) -> Self {
        Self { runtime, ..self }
    }

    /// The same machine with these roles and bindings.
    #[must_use]
    pub fn with_access(self, access: Authorizer) -> Self {
        Self { access, ..self }
    }

    /// The same machine, publishing a certificate authority in every namespace.
    #[must_use]
    pub fn with_root_ca(self, root_ca: Option<Arc<str>>) -> Self {
        Self { root_ca, ..self }
    }

    /// The same machine, issuing tokens with `accounts`.
    #[must_use]
    pub fn with_accounts(self, accounts: AccountTokens) -> Self {
        let accounts = Arc::new(accounts);
        Self { accounts, ..self }
    }

    /// The same machine with an authenticator.
    #[must_use]
    pub fn with_authenticator(&self, authenticator: Arc<dyn Authenticate>) -> Self {
        Self {
            authenticator: Some(authenticator),
            ..self.clone()
        }
    }

    /// The same machine, calling webhooks over the embedder's connections.
    #[must_use]
    pub fn with_dial(self, dial: Option<Arc<dyn Dial>>) -> Self {
        let Some(dial) = dial else { return self };
        let webhook_client = Arc::new(WebhookClient::new(self.environment.clone(), dial));
        Self {
            webhook_client,
            ..self
        }
    }

    /// The same machine over another view of the same store.
    #[must_use]
    pub fn with_view(&self, view: View) -> Self {
        Self {
            view,
            ..self.clone()
        }
    }

    /// Answers one request.
    pub async fn handle(&self, request: Request) -> Result<Reply> {
        let served = self.registry.find(&request.target)?;
        let deprecation: Vec<String> = served.deprecation().into_iter().collect();
        let reply = match check_namespace_scope(&served, &request) {
            Err(error) => Err(error),
            Ok(()) if request.target.subresource.is_some() => {
                self.subresource(&request, &served).await
            }
            Ok(()) => self.main(&request, &served).await,
        };
        match reply {
            Ok(reply) => Ok(reply.warned_first(deprecation)),
            // The wire adds it first, whatever the error.
            Err(error) => Err(error),
        }
    }

    async fn main(&self, request: &Request, served: &Arc<Served>) -> Result<Reply> {
        check_segment(request)?;
        served.check_verb(request.verb)?;
        match request.verb {
            Verb::Get => self.get(request, served).await,
            Verb::List => self.list(request, served).await,
            Verb::Watch => self.watch(request, served).await,
            Verb::Create if served.is_review() => self.answer(request, served).await,
            Verb::Create => self.create(request, served).await,
            Verb::Update => self.update(request, served).await,
            Verb::Patch => self.patch(request, served).await,
            Verb::Delete => self.delete(request, served).await,
            Verb::DeleteCollection => self.delete_collection(request, served).await,
        }
    }

    async fn get(&self, request: &Request, served: &Arc<Served>) -> Result<Reply> {
        let object = self.read(request, served).await?;
        self.reply(request, served, http::StatusCode::OK, &object)
    }

    /// The object of a request, as the view sees it.
    pub(crate) async fn read(&self, request: &Request, served: &Served) -> Result<Arc<Object>> {
        if let Some(revision) = request.revision("get")? {
            self.not_older_than(revision).await?;
        }
        let path = request.target.path();
        let found = self.view.get(&served.resource.bucket, &path).await?;
        found.ok_or_else(|| served.not_found(&request.target.name))
    }

    /// The newest state of the object that a write builds on, sequenced or committed.
    pub(crate) fn head(&self, served: &Served, path: &str) -> Option<Head> {
        self.view.store().head(&served.resource.bucket, path)
    }

    /// Waits until the state at `revision` is committed and cannot be lost.
    pub(crate) async fn settled(&self, revision: u64) -> Result<()> {
        self.view
            .store()
            .settled(revision)
            .await
            .map_err(|e| broken(&e))
    }

    /// Waits until the newest state of an object is committed: a client that is refused because of
    /// it must find it.
    pub(crate) async fn settle_head(&self, served: &Served, path: &str) -> Result<()> {
        match self.head(served, path) {
            Some(head) => self.settled(head.revision).await,
            None => Ok(()),
        }
    }

    /// Waits until all writes so far are committed: a client that is refused because of other
    /// objects must find them.
    pub(crate) async fn settle_all(&self) -> Result<()> {
        self.settled(self.view.store().sequenced()).await
    }

    /// Waits for this resource's turn, if its writes are serialized.
    pub(crate) async fn turn(&self, served: &Served) -> Option<Turn> {
        if !served.traits().exclusive {
            return None;
        }
        Some(self.turn_of(&served.resource.bucket).await)
    }

    /// Waits for a turn at something that is used one at a time.
    pub(crate) async fn turn_of(&self, what: &str) -> Turn {
        self.turns.at(what).await
    }
}

/// Across all namespaces, namespaced objects can only be listed and watched. The registry has
/// refused single objects there.
fn check_namespace_scope(served: &Served, request: &Request) -> Result<()> {
    let at_home = !served.resource.namespaced || !request.target.namespace.is_empty();
    if at_home || matches!(request.verb, Verb::List | Verb::Watch) {
        return Ok(());
    }
    Err(ApiError::method_not_allowed())
}

/// Checks that a name is one path segment.
fn check_segment(request: &Request) -> Result<()> {
    let name = &request.target.name;
    match crate::kinds::path_problem(name) {
        // No resource is served at such a path.
        Some(_) if name.contains('/') => Err(registry::missing()),
        Some(why) => Err(ApiError::bad_request(format!(
            "Name parameter invalid: {name:?}: {why}"
        ))),
        None => Ok(()),
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine")
            .field("view", &self.view)
            .finish_non_exhaustive()
    }
}

/// The error for a store that cannot accept the write.
pub(crate) fn broken(error: &store::Error) -> ApiError {
    match error {
        store::Error::TooLarge { .. } => ApiError::new(
            http::StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            error.to_string(),
        ),
        // Another server may have taken over by the time the client retries.
        store::Error::Broken(cause) if **cause == *store::STOPPING => ApiError {
            retry_after: Some(1),
            ..ApiError::new(
                http::StatusCode::SERVICE_UNAVAILABLE,
                "ServiceUnavailable",
                store::STOPPING,
            )
        },
        other => ApiError::internal(other.to_string()),
    }
}
