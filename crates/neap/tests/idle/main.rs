//! Services that sleep, as their users meet them: `neap up`, the sample, and the commands of
//! `neap idle`; and operator and resolver as processes of their own.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod ends;
mod place;
mod processes;

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Namespace, Service},
    discovery::v1::EndpointSlice,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use neap_idle::{api::ElastiService, service::facts::OFF};
use place::{Place, Said};
use serde_json::{Value, json};

async fn replicas(place: &Place) -> i32 {
    let deployments: Api<Deployment> = Api::namespaced(place.client().await, "default");
    let hello = deployments.get("hello").await.unwrap();
    hello.spec.unwrap().replicas.unwrap()
}

/// Where the public Service leads to, ready ones alone.
async fn led_to(place: &Place) -> Vec<String> {
    let slices: Api<EndpointSlice> = Api::namespaced(place.client().await, "default");
    let parameters = ListParams::default().labels("kubernetes.io/service-name=hello");
    let slices = slices.list(&parameters).await.unwrap();
    let endpoints = slices
        .iter()
        .flat_map(|slice| slice.endpoints.iter().flatten());
    let ready = endpoints.filter(|one| {
        let conditions = one.conditions.as_ref();
        conditions.is_none_or(|it| it.ready != Some(false))
    });
    ready.flat_map(|one| one.addresses.clone()).collect()
}

fn contains(said: &Said, texts: &[&str]) {
    assert_eq!(said.code, Some(0), "{said:?}");
    for text in texts {
        assert!(said.stdout.contains(text), "{text:?}: {said:?}");
    }
}

#[tokio::test]
async fn a_service_sleeps_and_the_first_request_wakes_it() {
    let place = Place::up();
    place.apply_example().await;
    let state = |show: &Value| show["state"] == "awake";
    place.shows(state).await;
    let listed = place.neap("idle list");
    contains(&listed, &["NAMESPACE", "default", "hello", "awake"]);

    let slept = place.neap("idle sleep hello --wait 2m");
    contains(&slept, &["default/hello is asleep"]);
    assert_eq!(replicas(&place).await, 0);
    let resolver = led_to(&place).await;
    assert!(
        matches!(&resolver[..], [one] if one.ends_with(".0.2")),
        "{resolver:?}"
    );
    let show = place.json("idle show hello");
    assert_eq!(show["state"], "asleep", "{show}");
    assert_eq!(show["proxied"], true, "{show}");
    let explained = place.neap("explain elastiservice/hello");
    contains(
        &explained,
        &[
            "it is asleep",
            "Asleep: resolvers answer for it",
            "it has slept for",
        ],
    );
    contains(
        &place.neap("check idle"),
        &[
            "1 ready",
            "has looked at all of them",
            "1, 1 of them asleep",
        ],
    );

    let answer = place.get("hello", 8080).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.contains("hello from hello-"), "{answer}");
    assert_eq!(replicas(&place).await, 1);
    let show = place
        .shows(|show| show["state"] == "awake" && show["lastCause"].is_string())
        .await;
    assert_eq!(show["lastCause"], "request", "{show}");
    contains(
        &place.neap("idle show hello"),
        &["default/hello is awake", "Last wake", ": request"],
    );
    place.stop();
}

#[tokio::test]
async fn people_wake_it_keep_it_awake_and_hear_what_it_saved() {
    let place = Place::up();
    place.apply_example().await;
    contains(&place.neap("idle sleep hello --wait 2m"), &["is asleep"]);
    contains(
        &place.neap("idle wake hello --wait 2m"),
        &["default/hello is awake"],
    );
    assert_eq!(replicas(&place).await, 1);
    contains(
        &place.neap("idle keep-awake hello --for 1h"),
        &["is kept awake until"],
    );
    contains(
        &place.neap("explain elastiservice hello"),
        &["it is kept awake until"],
    );
    let over = place.neap("idle keep-awake hello --until 2020-01-01T00:00:00Z");
    assert_eq!(over.code, Some(2), "{over:?}");
    assert!(over.stderr.contains("that time is over"), "{over:?}");
    contains(&place.neap("status"), &["Services that may sleep"]);
    let told = place.json("idle keep-awake hello --off");
    assert_eq!(told["done"], "keep-awake");
    assert!(place.json("idle show hello")["keptAwakeUntil"].is_null());
    contains(&place.neap("idle sleep --all -A --wait 2m"), &["is asleep"]);
    contains(
        &place.neap("idle report"),
        &["WOULD SAVE", "1 of 1 asleep; "],
    );
    let report = place.json("idle report -A");
    assert_eq!(
        (&report["services"], &report["asleep"]),
        (&1.into(), &1.into())
    );

    // It goes only with everything as it was.
    let asked = place.neap("idle uninstall");
    assert_eq!(asked.code, Some(6), "{asked:?}");
    assert!(
        asked
            .stderr
            .contains("1 ElastiService would be deleted, and 1 that sleep"),
        "{asked:?}"
    );
    assert_eq!(replicas(&place).await, 0);
    contains(
        &place.neap("idle uninstall --yes"),
        &["default/hello is awake and restored", "the definition"],
    );
    assert_eq!(replicas(&place).await, 1);
    let pods = led_to(&place).await;
    assert!(
        matches!(&pods[..], [one] if !one.ends_with(".0.2")),
        "{pods:?}"
    );
    let services: Api<Service> = Api::namespaced(place.client().await, "default");
    let left = services.list(&ListParams::default()).await.unwrap();
    let mut left = left.iter().filter_map(|one| one.metadata.name.as_deref());
    assert!(left.all(|name| !name.starts_with("elasti-")));
    place.stop();
}

#[tokio::test]
async fn what_annotations_asked_for_is_not_made_again_by_an_uninstall() {
    let place = Place::up();
    place.apply_example().await;
    let client = place.client().await;
    let (delete, patch) = (DeleteParams::default(), PatchParams::default());
    let by_hand: Api<ElastiService> = Api::namespaced(client.clone(), "default");
    by_hand.delete("hello", &delete).await.unwrap();
    let annotation = json!({"metadata": {"annotations": {"idle.neaptide.dev/enabled": "true"}}});
    let services: Api<Service> = Api::namespaced(client.clone(), "default");
    let annotation = Patch::Merge(annotation);
    services.patch("hello", &patch, &annotation).await.unwrap();
    place.shows_once_made(|show| show["state"] == "awake").await;
    contains(
        &place.neap("idle uninstall --yes"),
        &["default/hello is awake and restored", "the definition"],
    );
    let namespaces: Api<Namespace> = Api::all(client);
    let home = namespaces.get("elasti").await.unwrap();
    assert!(!home.annotations().contains_key(OFF), "{home:?}");
    place.stop();
}

#[test]
fn what_is_not_there_is_said_with_a_code_and_a_remedy() {
    let place = Place::up();
    for (line, code, texts) in [
        (
            "idle show hello",
            3,
            &["NT-IDLE-0007", "neap idle list -A"][..],
        ),
        ("idle wake hello", 3, &["NT-IDLE-0007"]),
        ("idle wake hello -A", 2, &["NT-IDLE-0010", "--all"]),
        ("idle wake", 2, &["Usage"]),
        ("idle keep-awake hello", 2, &["--for"]),
        (
            "idle keep-awake --all --for 999999999h",
            2,
            &["NT-IDLE-0012", "shorter"],
        ),
        (
            "idle keep-awake hello --until 18:00",
            2,
            &["write it like 2026-12-24T18:00:00Z"],
        ),
        ("idle keep-awake hello --for soon", 2, &["2h or 3d"]),
        (
            "idle keep-awake hello --until 2020-01-01T00:00:00Z",
            3,
            &["NT-IDLE-0007"],
        ),
        (
            "idle operator --leader-elec",
            2,
            &["NT-IDLE-0003", "--leader-elect"],
        ),
        (
            "idle operator",
            6,
            &["NT-IDLE-0001", "ELASTI_RESOLVER_NAMESPACE"],
        ),
        (
            "idle resolver",
            6,
            &["NT-IDLE-0001", "ELASTI_RESOLVER_NAMESPACE"],
        ),
    ] {
        let said = place.neap_once_served(line);
        assert_eq!(said.code, Some(code), "{line}: {said:?}");
        for text in texts {
            assert!(said.stderr.contains(text), "{line}: {text}: {said:?}");
        }
    }
    contains(
        &place.neap("idle list"),
        &["No service may sleep in namespace default."],
    );
    let bare = Place::bare();
    let said = bare.neap("idle list");
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.stderr.contains("NT-IDLE-0006"), "{said:?}");
    place.stop();
    bare.stop();
}
