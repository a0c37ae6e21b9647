//! What a right on an object does not allow by annotations.

use super::*;

/// What a user may write.
#[derive(Debug, Clone, Copy, PartialEq)]
enum MayWrite {
    Services,
    Deployments,
    ElastiServices,
}

/// The workload that sleeps in the end, and the annotation that is refused.
type Effect = (Option<&'static str>, Option<&'static str>);

/// What a user may write, the annotations, and their effect.
type Row = (MayWrite, &'static [(&'static str, &'static str)], Effect);

#[tokio::test(start_paused = true)]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
async fn a_right_on_an_object_gives_none_on_other_workloads() {
    use MayWrite::{Deployments, ElastiServices, Services};
    const QUERY_OF: (&str, &str) = (QUERY, "up");
    let own = (Some("web"), None);
    let refused = |annotation| (None, Some(annotation));
    let rows: [Row; 15] = [
        (Services, &[], own),
        (Services, &[(TARGET, "Deployment/web")], own),
        (Services, &[(TARGET, "Deployment/other")], refused(TARGET)),
        (Services, &[(TARGET, "StatefulSet/none")], refused(TARGET)),
        (
            Services,
            &[(TARGET, "example.com/v1/Thing/none")],
            refused(TARGET),
        ),
        (Services, &[(MIN_REPLICAS, "10")], own),
        (Services, &[(MIN_REPLICAS, "11")], refused(MIN_REPLICAS)),
        (
            Services,
            &[QUERY_OF, (SERVER_ADDRESS, "http://prometheus.example:9090")],
            own,
        ),
        (
            Services,
            &[
                QUERY_OF,
                (SERVER_ADDRESS, "http://me:hush@attacker.example"),
            ],
            refused(SERVER_ADDRESS),
        ),
        (Services, &[(AUTOSCALER, "hpa/anything")], own),
        (Services, &[(AUTOSCALER, "keda/of-web")], own),
        (
            Services,
            &[(AUTOSCALER, "keda/of-other")],
            refused(AUTOSCALER),
        ),
        (Deployments, &[(SERVICE, "shop")], own),
        (Deployments, &[(SERVICE, "foreign")], refused(SERVICE)),
        // A user who may write ElastiServices may name any workload: the cluster's RBAC controls that.
        (
            ElastiServices,
            &[(TARGET, "Deployment/other")],
            (Some("other"), None),
        ),
    ];
    for (may, annotations, (sleeps, refused)) in rows {
        let cluster = TestCluster::open().await;
        cluster.create::<Deployment>(deployment("web")).await;
        let mut other = deployment("other");
        let labels = json!({"app": "other"});
        other["spec"]["selector"]["matchLabels"] = labels.clone();
        other["spec"]["template"]["metadata"]["labels"] = labels;
        cluster.create::<Deployment>(other).await;
        cluster.create::<Service>(public("shop")).await;
        let mut foreign = public("foreign");
        foreign["spec"]["selector"] = json!({"app": "other"});
        cluster.create::<Service>(foreign).await;
        cluster.scaled_objects(&["web", "other"]).await;
        let all = annotations
            .iter()
            .map(|(name, value)| (*name, json!(value)));
        let all: serde_json::Map<_, _> = all
            .chain([(ENABLED, json!("true"))])
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        match may {
            Services => cluster.annotate::<Service>("shop", json!(all)).await,
            Deployments => cluster.annotate::<Deployment>("web", json!(all)).await,
            ElastiServices => {
                let service = json!({"metadata": {"name": "shop"}, "spec": {
                    "service": "shop",
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "other"},
                }});
                cluster.create::<ElastiService>(service).await;
            }
        }
        let row = format!("{may:?} {annotations:?}");
        let made = cluster.elasti_services().await;
        let targets: Vec<_> = made
            .iter()
            .map(|it| &*it.spec.scale_target_ref.name)
            .collect();
        assert_eq!(targets, sleeps.into_iter().collect::<Vec<_>>(), "{row}");
        let events = cluster.events().await;
        let mut told = events.iter().filter(|(reason, _)| reason == "NotAllowed");
        match refused {
            None => assert_eq!(told.next(), None, "{row}"),
            Some(annotation) => {
                let (_, message) = told.next().expect(&row);
                assert!(message.contains(annotation), "{row}: {message}");
                assert!(!message.contains("hush"), "{row}: {message}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_allowed_ends_when_the_service_selects_other_pods() {
    let cluster = TestCluster::open().await;
    cluster.create::<Deployment>(deployment("web")).await;
    cluster.create::<Service>(public("shop")).await;
    let on = json!({ENABLED: "true", TARGET: "Deployment/web"});
    cluster.annotate::<Service>("shop", on).await;
    assert!(cluster.elasti_service("shop").await.is_some());
    let patch = Patch::Merge(json!({"spec": {"selector": {"app": "another"}}}));
    let services = cluster.api::<Service>();
    let parameters = PatchParams::default();
    services.patch("shop", &parameters, &patch).await.unwrap();
    cluster.clock.sleep(Duration::from_secs(1)).await;
    assert!(cluster.elasti_service("shop").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn only_an_edit_of_a_user_is_reported_when_it_is_reverted() {
    let cluster = TestCluster::open().await;
    cluster.create::<Deployment>(deployment("web")).await;
    cluster.create::<Service>(public("shop")).await;
    let on = json!({ENABLED: "true", COOLDOWN: "1m"});
    cluster.annotate::<Service>("shop", on).await;
    cluster
        .annotate::<Service>("shop", json!({COOLDOWN: "2m"}))
        .await;
    assert_eq!(cluster.events().await, [], "the annotations changed");
    let parameters = PatchParams::default();
    let change = Patch::Merge(json!({"spec": {"cooldownPeriod": 5, "observeOnly": true}}));
    let services = cluster.api::<ElastiService>();
    services.patch("shop", &parameters, &change).await.unwrap();
    cluster.clock.sleep(Duration::from_secs(1)).await;
    let spec = cluster.elasti_service("shop").await.unwrap().spec;
    assert_eq!(
        (spec.cooldown_period, spec.observe_only),
        (Some(120), false)
    );
    let events = cluster.api::<Event>().list(&ListParams::default()).await;
    let events: Vec<_> = events.unwrap().items;
    let about = |event: &Event| event.involved_object.kind.clone().unwrap();
    let mut kinds: Vec<_> = events.iter().map(about).collect();
    kinds.sort();
    assert_eq!(kinds, ["ElastiService", "Service"]);
    for event in events {
        assert_eq!(event.type_.as_deref(), Some("Warning"));
        assert_eq!(event.reason.as_deref(), Some("EditReverted"));
        let message = event.message.unwrap();
        assert!(
            message.contains("spec.cooldownPeriod, spec.observeOnly of ElastiService shop"),
            "{message}"
        );
        assert!(message.contains("Service shop set it"), "{message}");
    }
}
