//! The generic REST machine: every verb for every kind, driven by a table.
//!
//! A [`Machine`] takes a parsed [`Request`] and gives a [`Reply`]; it knows neither HTTP bodies nor
//! kinds by name. What differs between kinds is in the [`registry`]: a schema, rules and traits.

mod admission;
mod apply;
mod booking;
mod bulk;
mod create;
mod delete;
mod incoming;
mod list;
mod metadata;
mod namespace;
mod own;
mod patch;
pub mod registry;
pub(crate) mod reply;
mod request;
mod selection;
mod special;
mod update;
mod watch;

use std::{collections::HashMap, fmt, sync::Arc};

use parking_lot::Mutex;

use crate::{
    environment::Environment,
    kinds::Settings,
    status::{ApiError, Result},
    store::{self, Head, Object, View},
};

pub use incoming::Payload;
pub use registry::{Registry, Served};
pub use reply::{Presentation, Reply, ReplyBody, Shown};
pub use request::{Request, Target, User, Verb};

use bulk::Bulk;

pub(crate) use delete::{DeleteOptions, FOREGROUND, ORPHAN, Propagation};
pub(crate) use request::path;

/// The server behind the wire: a view of the store and the table of what is served.
#[derive(Clone)]
pub struct Machine {
    pub(crate) environment: Environment,
    pub(crate) view: View,
    pub(crate) registry: Arc<Registry>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) runtime: Option<Arc<dyn crate::runtime::PodRuntime>>,
    /// The certificate authority, in PEM, that every namespace is told of.
    root_ca: Option<Arc<str>>,
    /// One writer at a time for resources that hand something out.
    turns: Arc<Mutex<Turns>>,
    /// For work on many objects.
    bulk: Bulk,
}

impl Machine {
    /// A machine over `view`.
    pub fn new(
        environment: Environment,
        view: View,
        registry: Arc<Registry>,
        settings: Settings,
    ) -> Self {
        Self {
            environment,
            view,
            registry,
            settings: Arc::new(settings),
            runtime: None,
            root_ca: None,
            turns: Arc::default(),
            bulk: Bulk::new(),
        }
    }

    /// The same machine with something that runs pods.
    #[must_use]
    pub fn with_runtime(self, runtime: Option<Arc<dyn crate::runtime::PodRuntime>>) -> Self {
        Self { runtime, ..self }
    }

    /// The same machine, telling every namespace of a certificate authority.
    #[must_use]
    pub fn with_root_ca(self, root_ca: Option<Arc<str>>) -> Self {
        Self { root_ca, ..self }
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
        check_home(&served, &request)?;
        let reply = if request.target.subresource.is_some() {
            self.subresource(&request, &served).await
        } else {
            self.main(&request, &served).await
        };
        Ok(reply?.with_warnings(served.deprecation().into_iter().collect()))
    }

    async fn main(&self, request: &Request, served: &Arc<Served>) -> Result<Reply> {
        served.check_verb(request.verb)?;
        match request.verb {
            Verb::Get => self.get(request, served).await,
            Verb::List => self.list(request, served).await,
            Verb::Watch => self.watch(request, served).await,
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

    /// The object a request is about, as the view sees it.
    pub(crate) async fn read(&self, request: &Request, served: &Served) -> Result<Arc<Object>> {
        if let Some(revision) = request.revision("get")? {
            self.not_older_than(revision).await?;
        }
        let path = request.target.path();
        let found = self.view.get(&served.resource.bucket, &path).await?;
        found.ok_or_else(|| served.not_found(&request.target.name))
    }

    /// The newest state of the object a write builds on, sequenced or committed.
    pub(crate) fn head(&self, served: &Served, path: &str) -> Option<Head> {
        self.view.store().head(&served.resource.bucket, path)
    }

    /// Waits until nobody can take back the state at `revision` any more.
    pub(crate) async fn settled(&self, revision: u64) -> Result<()> {
        self.view
            .store()
            .settled(revision)
            .await
            .map_err(|e| broken(&e))
    }

    /// Waits until nobody can take back the newest state of an object any more: who is refused
    /// because of it must find it when looking.
    pub(crate) async fn settle_head(&self, served: &Served, path: &str) -> Result<()> {
        match self.head(served, path) {
            Some(head) => self.settled(head.revision).await,
            None => Ok(()),
        }
    }

    /// Waits until nobody can take back anything that was written so far: who is refused because
    /// of other objects must find them when looking.
    pub(crate) async fn settle_all(&self) -> Result<()> {
        self.settled(self.view.store().sequenced()).await
    }

    /// Waits for this resource's turn, if its objects are written one at a time.
    pub(crate) async fn turn(&self, served: &Served) -> Option<Turn> {
        if !served.traits().exclusive {
            return None;
        }
        let bucket = &served.resource.bucket;
        let turn = self.turns.lock().entry(bucket.clone()).or_default().clone();
        Some(turn.lock_owned().await)
    }
}

/// Whose turn it is, by resource.
type Turns = HashMap<Arc<str>, Arc<tokio::sync::Mutex<()>>>;

/// Held by the one who may write a resource.
pub(crate) type Turn = tokio::sync::OwnedMutexGuard<()>;

/// Over all namespaces, objects that live in one can be listed and watched, and no more. Single
/// objects have no place there at all, which the registry has seen to.
fn check_home(served: &Served, request: &Request) -> Result<()> {
    let at_home = !served.resource.namespaced || !request.target.namespace.is_empty();
    if at_home || matches!(request.verb, Verb::List | Verb::Watch) {
        return Ok(());
    }
    Err(ApiError::method_not_allowed())
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine")
            .field("view", &self.view)
            .finish_non_exhaustive()
    }
}

/// The refusal for a store that cannot take the write.
pub(crate) fn broken(error: &store::Error) -> ApiError {
    match error {
        store::Error::TooLarge { .. } => ApiError::new(
            http::StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            error.to_string(),
        ),
        // Another server may have taken its place by the time the client asks again.
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
