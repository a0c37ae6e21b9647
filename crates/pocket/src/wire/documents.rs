//! Documents about the served resources: discovery, OpenAPI, the version. Rendered on first use and
//! cached until the registry changes.

use std::{collections::HashMap, sync::Arc};

use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY},
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{Body, metrics, negotiate, route::Route};
use crate::{
    discovery::{self, ApiResource, Document, Group},
    openapi::{self, GroupVersion, Published, SchemaOrigin},
    rest::{
        Registry, Served,
        registry::{Groups, Plurals, SchemaSource},
    },
};

/// The Kubernetes release whose behaviour this server follows.
const RELEASE: (&str, &str, &str) = ("1", "36", "v1.36.3");

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const PLAIN: &str = "application/json";
/// The index of schemas is JSON with a text content type.
const INDEX: &str = "text/plain; charset=utf-8";

/// A document and whether its form is aggregated.
type DocumentKey = (Route, bool);

/// The documents of one generation of the registry.
#[derive(Debug, Default)]
struct Cache {
    generation: u64,
    groups: Option<Arc<Vec<Group>>>,
    documents: HashMap<DocumentKey, DocumentResponse>,
}

#[derive(Debug)]
pub(super) struct Documents {
    registry: Arc<Registry>,
    /// Whether `metrics.k8s.io` is served.
    measures: bool,
    /// The server's address.
    address: String,
    cache: Mutex<Cache>,
}

/// A document to be sent.
#[derive(Debug, Clone)]
pub(super) struct DocumentResponse {
    document: Document,
    content_type: &'static str,
}

impl Documents {
    pub(super) fn new(registry: Arc<Registry>, measures: bool, address: String) -> Self {
        Self {
            registry,
            measures,
            address,
            cache: Mutex::default(),
        }
    }

    /// The document a route is for, if there is one.
    pub(super) fn find(&self, route: &Route, headers: &HeaderMap) -> Option<DocumentResponse> {
        let aggregated =
            matches!(route, Route::CoreVersions | Route::Groups) && wants_aggregated(headers);
        let key = (route.clone(), aggregated);
        // Read before the registry's content: a document may then be newer than its generation and
        // be rendered once more, but never older.
        let generation = self.registry.generation();
        let known = self.with_cache(generation, |cache| {
            (cache.documents.get(&key).cloned(), cache.groups.clone())
        });
        let (answer, groups) = known.unwrap_or_default();
        if answer.is_some() {
            return answer;
        }
        // Documents are large: the cache is not locked while one is rendered.
        let served = self.registry.groups();
        let groups = groups.unwrap_or_else(|| Arc::new(discovered(&served, self.measures)));
        let value = render(route, aggregated, &groups, &served, &self.address)?;
        let answer = DocumentResponse {
            document: Document::new(&value),
            content_type: match route {
                _ if aggregated => AGGREGATED,
                Route::OpenApiIndex => INDEX,
                _ => PLAIN,
            },
        };
        self.with_cache(generation, |cache| {
            cache.groups.get_or_insert(groups);
            cache.documents.insert(key, answer.clone());
        });
        Some(answer)
    }

    /// Uses the cache of a generation, unless it was replaced by a newer one.
    fn with_cache<T>(&self, generation: u64, then: impl FnOnce(&mut Cache) -> T) -> Option<T> {
        let mut cache = self.cache.lock();
        if cache.generation < generation {
            *cache = Cache {
                generation,
                ..Cache::default()
            };
        }
        (cache.generation == generation).then(|| then(&mut cache))
    }
}

impl DocumentResponse {
    /// The document, or 304 if the client has it.
    pub(super) fn respond(&self, headers: &HeaderMap) -> Response<Body> {
        let known = headers
            .get(IF_NONE_MATCH)
            .and_then(|value| value.to_str().ok());
        let mut response = if known == Some(self.document.etag.as_str()) {
            let mut response = Response::new(Body::full(""));
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        } else {
            Response::new(Body::full(self.document.body.clone()))
        };
        let known = response.status() == StatusCode::NOT_MODIFIED;
        let headers = response.headers_mut();
        if !known {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        }
        headers.insert(VARY, HeaderValue::from_static("Accept"));
        if let Ok(etag) = HeaderValue::from_str(&self.document.etag) {
            headers.insert(ETAG, etag);
        }
        response
    }
}

/// Whether the client prefers the aggregated form to the plain one.
fn wants_aggregated(headers: &HeaderMap) -> bool {
    let accepted = negotiate::accepted(headers);
    let best = accepted.iter().find(|range| {
        range.shown.is_empty() || (range.shown == "APIGroupDiscoveryList" && range.version == "v2")
    });
    best.is_some_and(|range| range.shown == "APIGroupDiscoveryList")
}

fn render(
    route: &Route,
    aggregated: bool,
    groups: &[Group],
    served: &Groups,
    address: &str,
) -> Option<Value> {
    match route {
        Route::CoreVersions if aggregated => Some(discovery::aggregated(groups, true)),
        Route::Groups if aggregated => Some(discovery::aggregated(groups, false)),
        Route::CoreVersions => Some(discovery::api_versions(groups, address)),
        Route::Groups => Some(discovery::group_list(groups)),
        Route::Group(name) => {
            let group = groups
                .iter()
                .find(|group| group.name == *name && !name.is_empty())?;
            Some(discovery::group(group))
        }
        Route::Version(group, version) => {
            let found = groups.iter().find(|candidate| candidate.name == *group)?;
            let version = found
                .versions
                .iter()
                .find(|candidate| candidate.name == *version)?;
            Some(discovery::resource_list(group, version))
        }
        Route::OpenApiIndex => Some(openapi::index(served.iter().map(|(key, plurals)| {
            let kinds = published(plurals);
            let document = group_version(key, &kinds);
            (document.path(), document.hash())
        }))),
        Route::OpenApi(group, version) => {
            let (key, plurals) = served.get_key_value(&(group.clone(), version.clone()))?;
            let kinds = published(plurals);
            Some(group_version(key, &kinds).document())
        }
        Route::ServerVersion => Some(version()),
        _ => None,
    }
}

/// The content of `/version`.
fn version() -> Value {
    let (major, minor, release) = RELEASE;
    json!({
        "major": major,
        "minor": minor,
        "gitVersion": release,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": "35",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, architecture()),
    })
}

/// The architecture in Go's words, which clients compare with theirs.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn group_version<'a>(key: &'a (String, String), kinds: &'a [Published<'a>]) -> GroupVersion<'a> {
    GroupVersion {
        group: &key.0,
        version: &key.1,
        kinds,
    }
}

fn published(plurals: &Plurals) -> Vec<Published<'_>> {
    plurals.values().map(|served| publish(served)).collect()
}

fn publish(served: &Served) -> Published<'_> {
    Published {
        plural: &served.resource.plural,
        kind: &served.resource.kind,
        namespaced: served.resource.namespaced,
        patched: !served.is_review(),
        schema: match &served.shape {
            SchemaSource::BuiltIn { .. } => SchemaOrigin::Builtin,
            SchemaSource::Custom {
                definition,
                version,
                ..
            } => SchemaOrigin::Custom(&definition.versions[*version].open_api),
        },
    }
}

fn discovered(served: &Groups, measures: bool) -> Vec<Group> {
    let stored = served.iter().flat_map(|((group, version), plurals)| {
        let row = |served: &Arc<Served>| (group.as_str(), version.as_str(), resource(served));
        plurals.values().map(row).collect::<Vec<_>>()
    });
    let measured = measures.then(metrics::resources).into_iter().flatten();
    let measured = measured.map(|resource| (metrics::GROUP, metrics::VERSION, resource));
    discovery::gather(stored.chain(measured))
}

fn resource(served: &Served) -> ApiResource {
    let resource = &served.resource;
    ApiResource {
        plural: resource.plural.clone(),
        singular: resource.singular.clone(),
        kind: resource.kind.clone(),
        namespaced: resource.namespaced,
        verbs: served.verbs.clone(),
        short_names: resource.short_names.clone(),
        categories: resource.categories.clone(),
        custom: served.is_custom(),
        subresources: served.subresources.clone(),
    }
}
