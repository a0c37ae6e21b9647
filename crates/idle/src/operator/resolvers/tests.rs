use neap_kit::{manager::Service, telemetry::Pages};
use serde_json::json;
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    api::wire::{Directory, ServiceActivity},
    operator::{
        http::{Resolver, ResolverRoutes, serve},
        tokens::{Denied, Door, Tokens},
    },
};

#[derive(Debug)]
struct Clerk;

impl Tokens for Clerk {
    fn owner<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<String>, Denied>> {
        let owner = (token == "good").then(|| "system:serviceaccount:elasti:o".to_owned());
        Box::pin(async move { Ok(owner) })
    }
}

/// Was asked for the cart at this time.
#[derive(Debug)]
struct Fixed(&'static str);

impl Resolver for Fixed {
    fn holds(&self, _: &str, _: &str) -> bool {
        false
    }

    fn directory(&self) -> Directory {
        Directory::default()
    }

    fn missing(&self) -> Vec<String> {
        Vec::new()
    }

    fn probe(&self, probe: Probe) -> BoxFuture<'_, Probed> {
        let failed = probe.count;
        let sources = Vec::new();
        Box::pin(async move { Probed { sources, failed } })
    }

    fn taken(&self, asked: Took) -> Taken {
        Taken {
            taken: asked.sources,
            strangers: Vec::new(),
        }
    }

    fn activity(&self) -> Activity {
        let activity = ServiceActivity {
            last: self.0.parse().unwrap(),
            held: 2,
            requests: 3,
            cold: None,
        };
        Activity {
            services: BTreeMap::from([("shop/cart".to_owned(), activity)]),
        }
    }

    fn metrics(&self) -> Pages {
        Pages::default()
    }
}

async fn resolver(tasks: &mut JoinSet<()>, last: &'static str) -> SocketAddr {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let routes = ResolverRoutes {
        door: Door::for_accounts(Arc::new(Clerk), [("elasti", "o")]),
        resolver: Arc::new(Fixed(last)),
    };
    let service: Service = serve("resolver", socket, Arc::new(routes), Clock::system());
    tasks.spawn(service.run(CancellationToken::new()));
    address
}

fn asking(token: &str) -> (tempfile::TempDir, Resolvers) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, token).unwrap();
    let resolvers = Resolvers::new(Clock::system()).showing(file);
    (folder, resolvers)
}

#[tokio::test]
async fn a_resolver_is_asked_with_the_token_of_the_pod() {
    let mut tasks = JoinSet::new();
    let resolver = resolver(&mut tasks, "2026-01-01T00:00:00Z").await;
    let (folder, resolvers) = asking("good\n");
    let probe: Probe =
        serde_json::from_value(json!({"address": "10.0.0.7", "port": 80, "count": 3})).unwrap();
    assert_eq!(resolvers.probe(resolver, &probe).await.unwrap().failed, 3);
    let took = Took {
        sources: vec![resolver],
        ..Took::default()
    };
    assert_eq!(
        resolvers.taken(resolver, &took).await.unwrap().taken,
        [resolver]
    );
    // The kubelet writes another one.
    std::fs::write(folder.path().join("token"), "stale").unwrap();
    let silent = resolvers.taken(resolver, &took).await.unwrap_err();
    assert!(silent.to_string().contains("401"), "{silent}");
    assert!(!silent.to_string().contains("stale"), "{silent}");
}

#[tokio::test]
async fn all_resolvers_count_together_and_one_that_is_silent_makes_it_unknown() {
    let mut tasks = JoinSet::new();
    let first = resolver(&mut tasks, "2026-01-01T00:00:00Z").await;
    let second = resolver(&mut tasks, "2026-01-01T00:05:00Z").await;
    let gone = {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        socket.local_addr().unwrap()
    };
    let (_folder, resolvers) = asking("good");
    let quiet = async |places: Vec<SocketAddr>| {
        let places: Places = Arc::new(move || places.clone());
        Counted::new(resolvers.clone(), places).quiet().await
    };
    let all = quiet(vec![first, second]).await.unwrap();
    let last = Some("2026-01-01T00:05:00Z".parse().unwrap());
    assert_eq!(all["shop/cart"], Quiet { held: 4, last });
    for places in [vec![first, gone], vec![]] {
        assert_eq!(quiet(places).await.unwrap_err().reason(), "ResolverSilent");
    }
}
