use std::{net::SocketAddr, sync::Arc};

use neap_kit::{clock::Clock, manager::Component, telemetry::ChunkedText};
use serde_json::json;
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    api::wire::{
        AcceptedQuery, AcceptedReport, Directory, ProbeReport, ProbeRequest, ServiceActivity,
    },
    auth::{Authenticator, Denied, TokenReviewer},
    http_api::{ApiClient, serve},
    resolver::internal_routes::{InternalRoutes, ResolverState},
};

#[derive(Debug)]
struct FakeReviewer;

impl TokenReviewer for FakeReviewer {
    fn username<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<String>, Denied>> {
        let username = (token == "good").then(|| "system:serviceaccount:elasti:o".to_owned());
        Box::pin(async move { Ok(username) })
    }
}

/// Received a request for the cart at this time.
#[derive(Debug)]
struct FakeResolver(&'static str);

impl ResolverState for FakeResolver {
    fn holds(&self, _: &str, _: &str) -> bool {
        false
    }

    fn directory(&self) -> Directory {
        Directory::default()
    }

    fn not_ready(&self) -> Vec<String> {
        Vec::new()
    }

    fn probe(&self, probe: ProbeRequest) -> BoxFuture<'_, ProbeReport> {
        let failed = probe.count;
        let sources = Vec::new();
        Box::pin(async move { ProbeReport { sources, failed } })
    }

    fn accepted(&self, query: AcceptedQuery) -> AcceptedReport {
        AcceptedReport {
            taken: query.sources,
            strangers: Vec::new(),
        }
    }

    fn activity(&self) -> ActivityReport {
        let activity = ServiceActivity {
            last: self.0.parse().unwrap(),
            held: 2,
            requests: 3,
            cold: None,
        };
        ActivityReport {
            services: BTreeMap::from([("shop/cart".to_owned(), activity)]),
        }
    }

    fn metrics(&self) -> ChunkedText {
        ChunkedText::default()
    }
}

async fn resolver(tasks: &mut JoinSet<()>, last: &'static str) -> SocketAddr {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let routes = InternalRoutes {
        authenticator: Authenticator::for_service_accounts(
            Arc::new(FakeReviewer),
            [("elasti", "o")],
        ),
        resolver: Arc::new(FakeResolver(last)),
    };
    let service: Component = serve("resolver", socket, Arc::new(routes), Clock::system());
    tasks.spawn(service.run(CancellationToken::new()));
    address
}

fn client(token: &str) -> (tempfile::TempDir, ResolverClient) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, token).unwrap();
    let client = ApiClient::new(Clock::system(), Some(file));
    (folder, ResolverClient::new(client))
}

#[tokio::test]
async fn a_resolver_is_called_with_the_token_of_the_pod() {
    let mut tasks = JoinSet::new();
    let resolver = resolver(&mut tasks, "2026-01-01T00:00:00Z").await;
    let (folder, client) = client("good\n");
    let probe: ProbeRequest =
        serde_json::from_value(json!({"address": "10.0.0.7", "port": 80, "count": 3})).unwrap();
    assert_eq!(client.probe(resolver, &probe).await.unwrap().failed, 3);
    let query = AcceptedQuery {
        sources: vec![resolver],
        ..AcceptedQuery::default()
    };
    assert_eq!(
        client.accepted(resolver, &query).await.unwrap().taken,
        [resolver]
    );
    // The kubelet replaces the token.
    std::fs::write(folder.path().join("token"), "stale").unwrap();
    let error = client.accepted(resolver, &query).await.unwrap_err();
    assert!(error.to_string().contains("401"), "{error}");
    assert!(!error.to_string().contains("stale"), "{error}");
}

#[tokio::test]
async fn counts_are_added_up_and_unknown_without_all_responses() {
    let mut tasks = JoinSet::new();
    let first = resolver(&mut tasks, "2026-01-01T00:00:00Z").await;
    let second = resolver(&mut tasks, "2026-01-01T00:05:00Z").await;
    let gone = {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        socket.local_addr().unwrap()
    };
    let (_folder, client) = client("good");
    let counts = async |resolvers: Vec<SocketAddr>| {
        let list: ListResolvers = Arc::new(move || resolvers.clone());
        ResolverRequestCounts::new(client.clone(), list)
            .by_service()
            .await
    };
    let all = counts(vec![first, second]).await.unwrap();
    let last = Some("2026-01-01T00:05:00Z".parse().unwrap());
    assert_eq!(all["shop/cart"], RecentRequests { held: 4, last });
    for resolvers in [vec![first, gone], vec![]] {
        assert_eq!(
            counts(resolvers).await.unwrap_err().reason(),
            "ResolverSilent"
        );
    }
}
