//! What tests of several modules share: a store, a provider, and requests to it without a socket.

use std::{sync::Arc, time::Duration};

use axum::{Router, body::Body, http::Request};
use http_body_util::{BodyExt, Limited};
use neap_kit::{clock::Clock, telemetry::Telemetry};
use neap_store::{Commit, KeyRing, Store, StoreOptions};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::{
    catalogue::Catalogue,
    documents::{SECURE, VERSIONS, region_document},
    enrichment::Enrichment,
    http::{Authorizer, Frontend, PagingKey, Parts},
    install::Hive,
    validation::Region,
};

pub(crate) const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000001";
pub(crate) const VERSION: &str = "4.19.9";

pub(crate) fn region() -> Region {
    Region {
        location: "local".to_owned(),
        domain: "local.aroapp.example.com".to_owned(),
        small_workers: false,
    }
}

pub(crate) fn store(clock: Clock) -> Store {
    let options = StoreOptions {
        keys: KeyRing::new([("1".to_owned(), [3; 32])]).unwrap(),
        secure: SECURE,
    };
    Store::in_memory(options, Arc::new(move || clock.now().as_millisecond()))
}

pub(crate) fn version_body(version: &str, default: bool) -> Value {
    json!({"id": version, "openShiftVersion": {"properties": {
        "version": version,
        "openShiftPullspec": "registry.example.com/release@sha256:0",
        "installerPullspec": "registry.example.com/installer@sha256:0",
        "enabled": true,
        "default": default,
    }}})
}

/// A provider without a socket.
pub(crate) struct Provider {
    pub(crate) store: Store,
    pub(crate) catalogue: Catalogue,
    pub(crate) clock: Clock,
    router: Router,
}

impl Provider {
    /// One with a registered subscription and a default version.
    pub(crate) async fn new(clock: Clock) -> Self {
        Self::with(store(clock), Enrichment::Off, None, clock).await
    }

    /// The same over this store, which asks clusters and Hive so.
    pub(crate) async fn with(
        store: Store,
        enrichment: Enrichment,
        hive: Option<Hive>,
        clock: Clock,
    ) -> Self {
        let catalogue = Catalogue::new(store.clone());
        let commit = Commit::default()
            .create(
                region_document(VERSIONS, VERSION),
                version_body(VERSION, true),
            )
            .create(
                region_document(VERSIONS, "4.18.1"),
                version_body("4.18.1", false),
            );
        store.commit(commit).await.unwrap();
        catalogue.read().await.unwrap();
        let frontend = Frontend::new(Parts {
            store: store.clone(),
            catalogue: catalogue.clone(),
            region: region(),
            authorizer: Authorizer::Development,
            paging: PagingKey::new(&[9; 32]).unwrap(),
            enrichment,
            commit: "test".to_owned(),
            clock,
            readiness_delay: Duration::ZERO,
        });
        let provider = Self {
            store,
            catalogue,
            clock,
            router: frontend.with_hive(hive).router(&Telemetry::default()),
        };
        let body = json!({"state": "Registered", "properties": {"tenantId": "t"}});
        let path = format!("/subscriptions/{SUBSCRIPTION}");
        let (status, ..) = provider.send("PUT", &path, Some(body)).await;
        assert_eq!(status, 201);
        provider
    }

    /// Sends a request. Returns status, headers and body.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> (u16, http::HeaderMap, Value) {
        self.send_with(method, path, body, &[]).await
    }

    pub(crate) async fn send_with(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
        headers: &[(&str, &str)],
    ) -> (u16, http::HeaderMap, Value) {
        let mut headers = headers.to_vec();
        let is_typed = headers.iter().any(|(name, _)| *name == "content-type");
        if body.is_some() && !is_typed {
            headers.push(("content-type", "application/json"));
        }
        let body = body.map(|body| body.to_string().into_bytes());
        let body = body.unwrap_or_default();
        self.send_bytes(method, path, body, &headers).await
    }

    /// Sends these bytes with these headers.
    pub(crate) async fn send_bytes(
        &self,
        method: &str,
        path: &str,
        body: Vec<u8>,
        headers: &[(&str, &str)],
    ) -> (u16, http::HeaderMap, Value) {
        let mut request = Request::builder().method(method).uri(path);
        request = request.header("referer", format!("https://arm.example.com{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body)).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        #[expect(clippy::disallowed_methods, reason = "it is limited in the same line")]
        let bytes = Limited::new(body, 4 << 20)
            .collect()
            .await
            .unwrap()
            .to_bytes();
        let value = serde_json::from_slice(&bytes).unwrap_or_default();
        (parts.status.as_u16(), parts.headers, value)
    }
}

/// The path of a cluster.
pub(crate) fn path(name: &str, api: &str) -> String {
    format!(
        "/subscriptions/{SUBSCRIPTION}/resourceGroups/group/providers/Microsoft.RedHatOpenShift/openShiftClusters/{name}?api-version={api}"
    )
}

/// A valid body of a PUT.
pub(crate) fn cluster(name: &str) -> Value {
    let subnet = |name: &str| {
        format!(
            "/subscriptions/{SUBSCRIPTION}/resourceGroups/vnet/providers/Microsoft.Network/virtualNetworks/vnet/subnets/{name}"
        )
    };
    json!({
        "location": "local",
        "tags": {"team": "blue"},
        "properties": {
            "clusterProfile": {
                "domain": name,
                "resourceGroupId": format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/aro-{name}"),
                "pullSecret": "{\"auths\":{\"registry.example.com\":{\"auth\":\"aHVzaA==\"}}}",
            },
            "servicePrincipalProfile": {
                "clientId": client_id(name),
                "clientSecret": "very-hush",
            },
            "networkProfile": {"podCidr": "10.128.0.0/14", "serviceCidr": "172.30.0.0/16"},
            "masterProfile": {"vmSize": "Standard_D8s_v3", "subnetId": subnet("master")},
            "workerProfiles": [{
                "name": "worker",
                "vmSize": "Standard_D4s_v3",
                "diskSizeGB": 128,
                "subnetId": subnet("worker"),
                "count": 3,
            }],
            "apiserverProfile": {"visibility": "Public"},
            "ingressProfiles": [{"name": "default", "visibility": "Public"}],
        },
    })
}

fn client_id(name: &str) -> String {
    let sum = name
        .bytes()
        .fold(7_u64, |sum, byte| sum * 31 + u64::from(byte));
    format!("00000000-0000-0000-0001-{:012x}", sum % (1 << 47))
}
