//! What a resolver is granted.

use neap_idle::{
    operator::settings::ResolverSettings,
    resolver::open::{self, Sockets},
};
use neap_kit::manager::Manager;
use tokio::net::TcpListener;

use super::*;

const RESOLVER: &str = "system:serviceaccount:elasti:elasti-resolver";

/// Told what the install tells it.
fn settings() -> ResolverSettings {
    let (variables, _) = started("elasti-resolver");
    ResolverSettings::read(&|name| variables.get(name).cloned()).unwrap()
}

async fn sockets() -> Sockets {
    let bind = async || TcpListener::bind("127.0.0.1:0").await.unwrap();
    Sockets {
        internal: bind().await,
        shared: bind().await,
    }
}

#[tokio::test(start_paused = true)]
async fn a_resolver_is_granted_what_it_uses_and_nothing_else() {
    let pocket = Pocket::open(Options::new(Environment::rehearsal(7)));
    let pocket = pocket.await.unwrap();
    let stage = Stage::open(&pocket, RESOLVER).await;
    stage.pass(1).await;
    let (watches, watching) = Watches::new(stage.clock);
    let site = Site {
        client: stage.client.clone(),
        watches,
        leadership: Leadership::alone(stage.clock),
        clock: stage.clock,
    };
    let mut manager = Manager::new(&site);
    let options = open::Options::of(&settings());
    let opened = open::services(&site, sockets().await, manager.health(), &options);
    let (services, resolver) = opened.unwrap();
    for service in services {
        manager.add(service);
    }
    manager.add(watching);
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(manager.run(stop.clone()));

    stage.create(service("web")).await;
    stage.create(workload("Deployment", "web")).await;
    let web = elasti_service("web", "Deployment", &Value::Null);
    stage.create(web).await;
    stage.pass(5).await;
    let web = Key::new("default", "web");
    assert!(resolver.tables.now().service(&web).is_some());
    asked_by_a_stranger(&stage).await;
    stop.cancel();
    while tasks.join_next().await.is_some() {}
    stage.held_to(&granted(true), &[]);
}

/// Whose a token is that it was shown.
async fn asked_by_a_stranger(stage: &Stage) {
    let reviews = Arc::new(Reviews::new(stage.client.clone(), stage.clock));
    let operator = ("elasti", "elasti-operator-controller-manager");
    let door = Door::for_accounts(reviews, [operator]);
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer unknown"));
    assert!(door.pass(&headers).await.is_err());
}
