//! The frontend: routes, middleware, and what leads from a request to one transaction.
//!
//! A handler parses, reads, calls a pure decision of [`crate::cluster`], commits, and answers. It never
//! does long work and never uses a Kubernetes client.

mod admin;
mod admin_operations;
mod answer;
mod auth;
mod clusters;
mod commit;
mod hive;
mod listing;
mod middleware;
mod operations;
mod paging;
mod preflight;
mod subscriptions;
#[cfg(test)]
mod tests;
mod versions;

use std::{collections::HashMap, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Request, State},
    middleware::{from_fn, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::{delete, get, post, put},
};
use neap_kit::{
    clock::Clock,
    http::{AccessLog, access_log},
    telemetry::Telemetry,
};
use neap_store::Store;
use percent_encoding::percent_decode_str;
use tower::ServiceExt;

pub use self::{
    answer::Failure,
    auth::{Authorizer, CertificateAuth, CertificateError, SharedCertificates},
    paging::PagingKey,
};
use crate::{catalogue::Catalogue, enrichment::Enrichment, install::Hive, validation::Region};

/// The largest body of a request, in bytes.
pub const MAX_BODY: usize = 1024 * 1024;
/// The number of clusters on a page.
const PAGE: usize = 10;

/// What every handler uses. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Frontend {
    parts: Arc<Parts>,
    /// For administrators who look at installations.
    hive: Option<Hive>,
}

/// The parts of a frontend.
#[derive(Debug)]
pub struct Parts {
    /// The documents.
    pub store: Store,
    /// The versions that can be installed.
    pub catalogue: Catalogue,
    /// The provider.
    pub region: Region,
    /// Who may call.
    pub authorizer: Authorizer,
    /// Seals the tokens of pages.
    pub paging: PagingKey,
    /// Asks clusters for what only they know.
    pub enrichment: Enrichment,
    /// The build of this program.
    pub commit: String,
    /// The clock.
    pub clock: Clock,
    /// How long after its start it is ready: ARM retries elsewhere until then.
    pub readiness_delay: Duration,
}

impl std::ops::Deref for Frontend {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.parts
    }
}

/// Path parameters by name.
pub(crate) type Params = HashMap<String, String>;

impl Frontend {
    /// A frontend of these parts.
    pub fn new(parts: Parts) -> Self {
        Self {
            parts: Arc::new(parts),
            hive: None,
        }
    }

    /// The same frontend, which shows administrators what Hive has.
    pub fn with_hive(mut self, hive: Option<Hive>) -> Self {
        self.hive = hive;
        self
    }

    /// The routes, which expect lower-case paths, behind the layer that makes them so.
    pub fn router(&self, telemetry: &Telemetry) -> Router {
        let log = AccessLog::new("fleet-rp", "x-ms-request-id", telemetry, self.clock);
        let without_dry_run = Router::new()
            .route("/subscriptions/{subscription}", put(subscriptions::put))
            .merge(Self::admin_routes())
            .route_layer(from_fn(middleware::without_dry_run));
        let routes = Self::arm_routes()
            .merge(without_dry_run)
            .route("/healthz/ready", get(operations::ready))
            .fallback(middleware::not_found)
            .layer(from_fn(middleware::envelope))
            .layer(from_fn_with_state(self.clone(), middleware::authenticate))
            .layer(from_fn_with_state(self.clone(), middleware::deadline))
            .layer(from_fn(middleware::contain))
            .layer(from_fn(middleware::headers))
            .layer(from_fn_with_state(log, access_log))
            .with_state(self.clone());
        Router::new().fallback(lower_case).with_state(routes)
    }

    fn arm_routes() -> Router<Self> {
        const SUBSCRIPTION: &str = "/subscriptions/{subscription}";
        const CLUSTER: &str = "/subscriptions/{subscription}/resourcegroups/{group}/providers/{namespace}/{kind}/{name}";
        let of = |path: &str| format!("{SUBSCRIPTION}/providers/{{namespace}}{path}");
        let of_cluster = |path: &str| format!("{CLUSTER}{path}");
        Router::new()
            .route(&of("/{kind}"), get(clusters::list))
            .route(
                "/subscriptions/{subscription}/resourcegroups/{group}/providers/{namespace}/{kind}",
                get(clusters::list),
            )
            .route(
                CLUSTER,
                get(clusters::get)
                    .put(clusters::put)
                    .patch(clusters::patch)
                    .delete(clusters::delete),
            )
            .route(&of_cluster("/listcredentials"), post(clusters::credentials))
            .route(
                &of_cluster("/listadmincredentials"),
                post(clusters::admin_credentials),
            )
            .route(&of_cluster("/detectors"), get(clusters::detectors))
            .route(&of_cluster("/detectors/{detector}"), get(clusters::detectors))
            .route(
                "/subscriptions/{subscription}/resourcegroups/{group}/providers/{namespace}/deployments/{deployment}/preflight",
                post(preflight::preflight),
            )
            .route(
                &of("/locations/{location}/operationsstatus/{operation}"),
                get(operations::status),
            )
            .route(
                &of("/locations/{location}/operationresults/{operation}"),
                get(operations::result),
            )
            .route(&of("/locations/{location}/openshiftversions"), get(versions::list))
            .route(
                &of("/locations/{location}/openshiftversions/{version}"),
                get(versions::get),
            )
            .route(
                &of("/locations/{location}/platformworkloadidentityrolesets"),
                get(versions::list_role_sets),
            )
            .route(
                &of("/locations/{location}/platformworkloadidentityrolesets/{minor}"),
                get(versions::get_role_set),
            )
            .route("/providers/{namespace}/operations", get(operations::list))
    }

    fn admin_routes() -> Router<Self> {
        const CLUSTER: &str = "/admin/subscriptions/{subscription}/resourcegroups/{group}/providers/{namespace}/{kind}/{name}";
        Router::new()
            .route(
                &format!("{CLUSTER}/clusterdeployment"),
                get(hive::cluster_deployment),
            )
            .route(&format!("{CLUSTER}/clustersync"), get(hive::cluster_sync))
            .route("/admin/hivesyncset", get(hive::list_sync_sets))
            .route(
                "/admin/hivesyncset/syncsetname/{name}",
                get(hive::get_sync_set),
            )
            .route(
                "/admin/versions",
                get(admin::versions).put(admin::put_version),
            )
            .route("/admin/versions/{version}", delete(admin::delete_version))
            .route(
                "/admin/platformworkloadidentityrolesets",
                get(admin::role_sets).put(admin::put_role_set),
            )
            .route(
                "/admin/platformworkloadidentityrolesets/{minor}",
                delete(admin::delete_role_set),
            )
            .route("/admin/supportedvmsizes", get(admin::vm_sizes))
            .route("/admin/clusters", get(admin::clusters))
            .route(
                "/admin/providers/{namespace}/{kind}",
                get(admin::all_clusters),
            )
            .route("/admin/billingdocuments", get(admin::billing))
            .route("/admin/billingdocuments/{id}", get(admin::billing_of))
            .route("/admin/operations", get(admin_operations::operations))
            .route(
                "/admin/operations/{subscription}/{operation}",
                get(admin_operations::operation),
            )
            .route(
                "/admin/operations/{subscription}/{operation}/cancel",
                post(admin_operations::cancel),
            )
            .route(
                "/admin/operations/{subscription}/{operation}/retry",
                post(admin_operations::retry),
            )
    }
}

/// The path as the client wrote it, decoded: ids of new objects keep its case.
#[derive(Debug, Clone)]
pub(crate) struct OriginalPath(pub(crate) String);

async fn lower_case(State(routes): State<Router>, mut request: Request) -> Response {
    // `//` and a trailing `/` lead to the same resource.
    let parts = request.uri().path().split('/');
    let (mut clean, mut original) = (String::new(), String::new());
    for part in parts.filter(|part| !part.is_empty()) {
        clean.push('/');
        clean.push_str(&part.to_ascii_lowercase());
        original.push('/');
        // A part that is no text is refused by its route.
        original.push_str(&percent_decode_str(part).decode_utf8_lossy());
    }
    let query = request.uri().query().map(|it| format!("?{it}"));
    let path = format!("{clean}{}", query.unwrap_or_default());
    let path = if clean.is_empty() { "/" } else { path.as_str() };
    let Ok(uri) = path.parse() else {
        let error = crate::cloud_error::CloudError::bad_request(
            "InvalidRequestContent",
            "",
            "The path of the request is invalid.",
        );
        return Failure(error).into_response();
    };
    *request.uri_mut() = uri;
    request.extensions_mut().insert(OriginalPath(original));
    match routes.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}
