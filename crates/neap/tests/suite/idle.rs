//! Services that sleep: the example in `neap up`, the commands of `neap idle`, and operator and resolver
//! as separate processes.

mod broken;
mod idle_server;
mod processes;
mod resolver_shutdown;

pub(crate) use processes::address;

use idle_server::IdleServer;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Namespace, Service},
    discovery::v1::EndpointSlice,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use neap_idle::api::{ElastiService, annotations::OFF};
use serde_json::{Value, json};

use crate::command_output::CommandOutput;

async fn replicas(server: &IdleServer) -> i32 {
    let deployments: Api<Deployment> = Api::namespaced(server.client().await, "default");
    let hello = deployments.get("hello").await.unwrap();
    hello.spec.unwrap().replicas.unwrap()
}

/// The addresses of the ready endpoints of the public Service.
async fn ready_addresses(server: &IdleServer) -> Vec<String> {
    let slices: Api<EndpointSlice> = Api::namespaced(server.client().await, "default");
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

fn contains(output: &CommandOutput, texts: &[&str]) {
    assert_eq!(output.code, Some(0), "{output:?}");
    for text in texts {
        assert!(output.stdout.contains(text), "{text:?}: {output:?}");
    }
}

#[tokio::test]
async fn a_service_sleeps_and_the_first_request_wakes_it() {
    let server = IdleServer::up();
    server.apply_example().await;
    let state = |show: &Value| show["state"] == "awake";
    server.shows(state).await;
    let listed = server.neap("idle list");
    contains(&listed, &["NAMESPACE", "default", "hello", "awake"]);

    let slept = server.neap("idle sleep hello --wait 2m");
    contains(&slept, &["default/hello is asleep"]);
    assert_eq!(replicas(&server).await, 0);
    let resolver = ready_addresses(&server).await;
    assert!(
        matches!(&resolver[..], [one] if one.ends_with(".0.2")),
        "{resolver:?}"
    );
    let show = server.json("idle show hello");
    assert_eq!(show["state"], "asleep", "{show}");
    assert_eq!(show["proxied"], true, "{show}");
    let explained = server.neap("explain elastiservice/hello");
    contains(
        &explained,
        &[
            "is healthy; asleep for",
            "Asleep: resolvers answer for it",
            "it has slept for",
        ],
    );
    contains(
        &server.neap("check idle"),
        &[
            "1 ready",
            "has reconciled all ElastiServices",
            "1, 1 asleep",
        ],
    );

    contains(
        &server.neap("idle plan hello"),
        &["ElastiService default/hello", "nothing to write", "Assumed"],
    );
    let plan = server.json("idle plan hello");
    assert_eq!(plan["items"][0]["plan"], json!([]), "{plan}");

    let answer = server.get("hello", 8080).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.contains("hello from hello-"), "{answer}");
    assert_eq!(replicas(&server).await, 1);
    let show = server
        .shows(|show| show["state"] == "awake" && show["lastCause"].is_string())
        .await;
    assert_eq!(show["lastCause"], "request", "{show}");
    contains(
        &server.neap("idle show hello"),
        &["default/hello is awake", "Last wake", ": request"],
    );
    server.stop();
}

#[tokio::test]
async fn commands_wake_a_service_keep_it_awake_and_report_savings() {
    let server = IdleServer::up();
    server.apply_example().await;
    contains(&server.neap("idle sleep hello --wait 2m"), &["is asleep"]);
    contains(
        &server.neap("idle wake hello --wait 2m"),
        &["default/hello is awake"],
    );
    assert_eq!(replicas(&server).await, 1);
    contains(
        &server.neap("idle keep-awake hello --for 1h"),
        &["is kept awake until"],
    );
    contains(
        &server.neap("explain elastiservice hello"),
        &["it is kept awake until"],
    );
    let over = server.neap("idle keep-awake hello --until 2020-01-01T00:00:00Z");
    assert_eq!(over.code, Some(2), "{over:?}");
    assert!(over.stderr.contains("that time is in the past"), "{over:?}");
    contains(&server.neap("status"), &["Services that can sleep"]);
    let told = server.json("idle keep-awake hello --off");
    assert_eq!(told["done"], "keep-awake");
    assert!(server.json("idle show hello")["keptAwakeUntil"].is_null());
    contains(
        &server.neap("idle sleep --all -A --wait 2m"),
        &["is asleep"],
    );
    contains(
        &server.neap("idle report"),
        &["WOULD SAVE", "1 of 1 asleep; "],
    );
    let report = server.json("idle report -A");
    assert_eq!(
        (&report["services"], &report["asleep"]),
        (&1.into(), &1.into())
    );

    // Uninstall restores everything before it removes the definition.
    let asked = server.neap("idle uninstall");
    assert_eq!(asked.code, Some(6), "{asked:?}");
    assert!(
        asked
            .stderr
            .contains("1 ElastiService would be deleted, and 1 of them"),
        "{asked:?}"
    );
    assert_eq!(replicas(&server).await, 0);
    contains(
        &server.neap("idle uninstall --yes"),
        &["default/hello is awake and restored", "the definition"],
    );
    assert_eq!(replicas(&server).await, 1);
    let pods = ready_addresses(&server).await;
    assert!(
        matches!(&pods[..], [one] if !one.ends_with(".0.2")),
        "{pods:?}"
    );
    let services: Api<Service> = Api::namespaced(server.client().await, "default");
    let left = services.list(&ListParams::default()).await.unwrap();
    let mut left = left.iter().filter_map(|one| one.metadata.name.as_deref());
    assert!(left.all(|name| !name.starts_with("elasti-")));
    server.stop();
}

#[tokio::test]
async fn uninstall_does_not_recreate_services_of_annotations() {
    let server = IdleServer::up();
    server.apply_example().await;
    let client = server.client().await;
    let (delete, patch) = (DeleteParams::default(), PatchParams::default());
    let by_hand: Api<ElastiService> = Api::namespaced(client.clone(), "default");
    by_hand.delete("hello", &delete).await.unwrap();
    let annotation = json!({"metadata": {"annotations": {"idle.neaptide.dev/enabled": "true"}}});
    let services: Api<Service> = Api::namespaced(client.clone(), "default");
    let annotation = Patch::Merge(annotation);
    services.patch("hello", &patch, &annotation).await.unwrap();
    server
        .shows_once_created(|show| show["state"] == "awake")
        .await;
    contains(
        &server.neap("idle uninstall --yes"),
        &["default/hello is awake and restored", "the definition"],
    );
    let namespaces: Api<Namespace> = Api::all(client);
    let home = namespaces.get("elasti").await.unwrap();
    assert!(!home.annotations().contains_key(OFF), "{home:?}");
    server.stop();
}

#[test]
fn errors_have_a_code_and_a_remedy() {
    let server = IdleServer::up();
    for (line, code, texts) in [
        (
            "idle show hello",
            3,
            &["NT-IDLE-0007", "neap idle list -A"][..],
        ),
        ("idle wake hello", 3, &["NT-IDLE-0007"]),
        ("idle plan hello", 3, &["NT-IDLE-0007", "neap idle list -A"]),
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
        let said = server.neap_once_served(line);
        assert_eq!(said.code, Some(code), "{line}: {said:?}");
        for text in texts {
            assert!(said.stderr.contains(text), "{line}: {text}: {said:?}");
        }
    }
    contains(
        &server.neap("idle list"),
        &["No service may sleep in namespace default."],
    );
    let bare = IdleServer::bare();
    let said = bare.neap("idle list");
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.stderr.contains("NT-IDLE-0006"), "{said:?}");
    server.stop();
    bare.stop();
}
