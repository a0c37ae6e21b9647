//! An OCI registry: the distribution specification over a folder or memory.
//!
//! [`Registry`] is the state value: an index of repositories (pure), the contents of blobs (files or
//! memory), uploads under way, and tokens that were given out. Requests are parsed to a [`route`],
//! authorized by [`access`], and answered by a module for each kind of thing.
//!
//! Invariants:
//! - a blob is in a repository only after its content was checked against its digest;
//! - a manifest is stored byte for byte as it was pushed, and only if what it names is there;
//! - a tag moves in one step, after its manifest is stored: a push that breaks off changes no tag;
//! - nothing is collected that a manifest names, or that a push under way may still name.

mod access;
mod blobs;
mod collect;
mod contents;
mod digest;
mod error;
mod folder;
mod index;
mod manifest;
mod manifests;
mod names;
mod referrers;
mod route;
mod settings;
mod tags;
mod tokens;
mod uploads;

use std::{path::PathBuf, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use neap_kit::{client::Body, clock::Clock, manager::Component};
use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;

use self::{
    access::Action, contents::Contents, folder::Folder, index::Index, route::Route, tokens::Tokens,
    uploads::Uploads,
};
pub use self::{
    access::{Access, User},
    collect::Collected,
    digest::{Algorithm, Digest, DigestError},
    error::{ErrorCode, RegistryError},
    folder::OpenError,
    names::{NameError, RepositoryName, Tag},
    settings::Settings,
};
use crate::system::System;

/// How often what is no longer used is collected.
const COLLECT_INTERVAL: Duration = Duration::from_hours(1);

type Answer = Result<Response<Body>, RegistryError>;

/// A registry.
#[derive(Debug)]
pub struct Registry {
    settings: Settings,
    clock: Clock,
    index: Mutex<Index>,
    contents: Contents,
    /// Where the index is kept besides memory.
    folder: Option<Folder>,
    /// Held while the index is changed on disk and in memory, so that both have the same order.
    changing: AsyncMutex<()>,
    uploads: Uploads,
    tokens: Tokens,
}

impl Registry {
    /// A registry that keeps everything in memory.
    pub fn in_memory(settings: Settings, clock: Clock) -> Self {
        let contents = Contents::memory(settings.max_bytes);
        Self::new(settings, clock, Index::default(), contents, None)
    }

    /// A registry that keeps everything in a folder, which is created if it is missing. Reads the
    /// index, and removes what an earlier process left unfinished.
    pub async fn in_folder(
        settings: Settings,
        clock: Clock,
        path: impl Into<PathBuf>,
    ) -> Result<Self, OpenError> {
        let path = path.into();
        let folder = Folder::open(path.clone()).await?;
        let (index, blobs) = folder.load().await?;
        let contents = Contents::folder(path, settings.max_bytes, blobs, clock.uptime());
        Ok(Self::new(settings, clock, index, contents, Some(folder)))
    }

    fn new(
        settings: Settings,
        clock: Clock,
        index: Index,
        contents: Contents,
        folder: Option<Folder>,
    ) -> Self {
        Self {
            settings,
            clock,
            index: Mutex::new(index),
            contents,
            folder,
            changing: AsyncMutex::new(()),
            uploads: Uploads::default(),
            tokens: Tokens::default(),
        }
    }

    /// Collects what is no longer used, from time to time, until the component is stopped.
    pub fn collector(self: &Arc<Self>) -> Component {
        let registry = self.clone();
        Component::new("registry clean-up", move |stop| async move {
            loop {
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = registry.clock.sleep(COLLECT_INTERVAL) => {}
                }
                if let Err(error) = registry.collect().await {
                    tracing::warn!(%error, "the registry could not be cleaned up");
                }
            }
        })
    }

    /// The tags of a repository and the digests that they lead to.
    pub fn tags(&self, repository: &RepositoryName) -> Vec<(Tag, Digest)> {
        let index = self.index.lock();
        let repository = index.repository(repository);
        let tags = repository.into_iter().flat_map(|found| &found.tags);
        tags.map(|(tag, digest)| (tag.clone(), digest.clone()))
            .collect()
    }

    /// The names of the repositories.
    pub fn repositories(&self) -> Vec<RepositoryName> {
        self.index.lock().names().cloned().collect()
    }

    /// The number of bytes of all blobs.
    pub fn size(&self) -> u64 {
        self.contents.size()
    }

    async fn answer(&self, request: Request<Body>) -> Answer {
        let path = request.uri().path();
        let route = Route::parse(path)?;
        if route == Route::Token {
            return self.token(request).await;
        }
        self.authorize(&route, &request)?;
        let method = request.method().clone();
        match (&route, &method) {
            (Route::Base, &Method::GET | &Method::HEAD) => Ok(base()),
            (Route::Catalog, &Method::GET) => self.catalog(request.uri()),
            (Route::Tags(name), &Method::GET) => self.list_tags(name, request.uri()),
            (Route::Referrers(name, digest), &Method::GET) => {
                Ok(self.referrers(name, digest, request.uri()))
            }
            (Route::Manifest(name, reference), &Method::GET | &Method::HEAD) => {
                self.get_manifest(name, reference, request).await
            }
            (Route::Manifest(name, reference), &Method::PUT) => {
                self.put_manifest(name, reference, request).await
            }
            (Route::Manifest(name, reference), &Method::DELETE) => {
                self.delete_manifest(name, reference).await
            }
            (Route::Blob(name, digest), &Method::GET | &Method::HEAD) => {
                let (head, _) = request.into_parts();
                self.get_blob(name, digest, &head).await
            }
            (Route::Blob(name, digest), &Method::DELETE) => self.delete_blob(name, digest).await,
            (Route::NewUpload(name), &Method::POST) => self.start_upload(name, request).await,
            (Route::Upload(name, id), &Method::PATCH) => {
                self.append_to_upload(name, id, request).await
            }
            (Route::Upload(name, id), &Method::PUT) => self.finish_upload(name, id, request).await,
            (Route::Upload(name, id), &Method::GET) => self.upload_status(name, id),
            (Route::Upload(name, id), &Method::DELETE) => self.cancel_upload(name, id).await,
            _ => {
                let message = format!("{method} is not allowed here");
                Err(RegistryError::new(ErrorCode::Unsupported, message))
            }
        }
    }

    fn authorize(&self, route: &Route, request: &Request<Body>) -> Result<(), RegistryError> {
        let action = Action::of(route, request.method());
        let needed: Vec<_> = route
            .repository()
            .map(|name| (name.clone(), action))
            .into_iter()
            .collect();
        self.check_access(&needed, request)
    }
}

fn base() -> Response<Body> {
    let mut response = Response::new(Body::from("{}"));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

impl System for Registry {
    fn respond(self: Arc<Self>, request: Request<Body>) -> BoxFuture<'static, Response<Body>> {
        Box::pin(async move {
            let is_head = request.method() == Method::HEAD;
            let mut response = match self.answer(request).await {
                Ok(response) => response,
                Err(error) => {
                    if error.code.status() == StatusCode::INTERNAL_SERVER_ERROR {
                        tracing::warn!(%error, "the registry failed");
                    }
                    error.response()
                }
            };
            let version = HeaderValue::from_static("registry/2.0");
            let headers = response.headers_mut();
            headers.insert("docker-distribution-api-version", version);
            if is_head {
                without_content(response)
            } else {
                response
            }
        })
    }
}

/// The answer to HEAD: the headers of GET, with the length that its body would have.
fn without_content(mut response: Response<Body>) -> Response<Body> {
    let length = http_body::Body::size_hint(response.body()).exact();
    if let Some(length) = length
        && !response.headers().contains_key(header::CONTENT_LENGTH)
    {
        let length = HeaderValue::from(length);
        response
            .headers_mut()
            .insert(header::CONTENT_LENGTH, length);
    }
    *response.body_mut() = Body::empty();
    response
}

#[cfg(test)]
mod tests;
