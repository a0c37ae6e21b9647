//! The rights of a resolver.

use neap_idle::resolver::{self, ResolverOptions, Sockets};
use neap_kit::manager::Manager;
use tokio::net::TcpListener;

use super::*;

const RESOLVER: &str = "system:serviceaccount:elasti:elasti-resolver";

/// The options from the manifests.
fn options() -> ResolverOptions {
    let (variables, _) = started("elasti-resolver");
    ResolverOptions::read(&|name| variables.get(name).cloned()).unwrap()
}

async fn sockets() -> Sockets {
    let bind = async || TcpListener::bind("127.0.0.1:0").await.unwrap();
    Sockets {
        internal: bind().await,
        shared: bind().await,
    }
}

#[tokio::test(start_paused = true)]
async fn a_resolver_has_the_rights_that_it_uses_and_no_others() {
    let pocket = Pocket::open(Options::new(Environment::simulated(7)));
    let pocket = pocket.await.unwrap();
    let fixture = RightsFixture::open(&pocket, RESOLVER).await;
    fixture.pass(1).await;
    let (watches, watching) = Watches::new(fixture.clock);
    let context = Context {
        client: fixture.client.clone(),
        watches,
        leadership: Leadership::without_election(fixture.clock),
        clock: fixture.clock,
    };
    let mut manager = Manager::new(&context);
    let sockets = sockets().await;
    let opened = resolver::components(&context, sockets, manager.health(), &options());
    let (services, resolver) = opened.unwrap();
    for service in services {
        manager.add(service);
    }
    manager.add(watching);
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(manager.run(stop.clone()));

    fixture.create(service("web")).await;
    fixture.create(workload("Deployment", "web")).await;
    let web = elasti_service("web", "Deployment", &Value::Null);
    fixture.create(web).await;
    fixture.pass(5).await;
    let web = Key::new("default", "web");
    assert!(resolver.route_table.current().service(&web).is_some());
    review_unknown_token(&fixture).await;
    stop.cancel();
    while tasks.join_next().await.is_some() {}
    fixture.assert_rights(&granted(true), &[]);
}

/// Reviews an unknown token, as for a request of a stranger.
async fn review_unknown_token(fixture: &RightsFixture) {
    let reviews = Arc::new(TokenReviews::new(fixture.client.clone(), fixture.clock));
    let operator = ("elasti", "elasti-operator-controller-manager");
    let authenticator = Authenticator::for_service_accounts(reviews, [operator]);
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer unknown"));
    assert!(authenticator.check(&headers).await.is_err());
}
