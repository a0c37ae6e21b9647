//! Running workloads: rollouts, services, and what survives the end of `neap up`.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use super::kubectl_cluster::KubectlCluster;

const SAMPLE: &str = include_str!("../../../../../examples/web/web.yaml");

/// The manifest of a Deployment `web` whose pods run `sleep` with this number of seconds.
pub(crate) fn sleeper(replicas: u32, seconds: u32) -> String {
    format!(
        "
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - {{name: main, image: busybox, command: [sleep, '{seconds}']}}
"
    )
}

/// Sends a request and returns the response.
fn get(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

pub(crate) fn responds_by_address_and_name(cluster: &KubectlCluster) {
    cluster.file("web.yaml", SAMPLE);
    cluster.ok("apply -f web.yaml");
    cluster.ok("rollout status deployment/web --timeout=60s");
    let address =
        cluster.ok("get service web -o jsonpath='{.spec.clusterIP}:{.spec.ports[0].port}'");
    let answer = get(&address);
    assert!(answer.contains("hello from web-"), "{answer}");
    let visitor = cluster.follow("logs -f deployment/visitor");
    let hello = std::iter::repeat_with(|| visitor.line()).take(60);
    let mut hello = hello.filter(|line| line.starts_with("hello from web-"));
    assert!(
        hello.next().is_some(),
        "the visitor does not reach the service by its name"
    );
}

#[test]
fn the_example_responds_by_address_and_by_name() {
    let Some(cluster) = KubectlCluster::up("the_example_responds_by_address_and_by_name", &[])
    else {
        return;
    };
    responds_by_address_and_name(&cluster);
}

#[test]
fn two_servers_run_side_by_side() {
    let test = "two_servers_run_side_by_side";
    let (Some(one), Some(other)) = (KubectlCluster::up(test, &[]), KubectlCluster::up(test, &[]))
    else {
        return;
    };
    let mut addresses = Vec::new();
    for cluster in [&one, &other] {
        cluster.file("web.yaml", SAMPLE);
        cluster.ok("apply -f web.yaml");
        cluster.ok("rollout status deployment/web --timeout=60s");
        let address = cluster.ok("get service web -o jsonpath='{.spec.clusterIP}'");
        assert!(get(&format!("{address}:8080")).contains("hello from web-"));
        addresses.push(cluster.ok("get pods -o jsonpath='{.items[*].status.podIP}'"));
    }
    let same = |address: &&str| addresses[1].split(' ').any(|other| other == *address);
    assert!(
        !addresses[0].split(' ').any(|address| same(&address)),
        "{addresses:?}"
    );
}

#[test]
fn a_rollout_is_followed_undone_paused_and_resumed() {
    let Some(cluster) = KubectlCluster::up("a_rollout_is_followed_undone_paused_and_resumed", &[])
    else {
        return;
    };
    let image = "get deployment web -o jsonpath='{.spec.template.spec.containers[0].image}'";
    cluster.file("web.yaml", &sleeper(3, 1000));
    cluster.ok("apply -f web.yaml");
    cluster.ok("rollout status deployment/web --timeout=60s");
    cluster.ok("wait deployment/web --for=condition=Available --timeout=60s");
    cluster.ok("set image deployment/web main=debian");
    let status = cluster.ok("rollout status deployment/web --timeout=60s");
    assert!(status.contains("successfully rolled out"), "{status}");
    let pods = cluster.json("get pods -l app=web");
    let images = pods["items"].as_array().unwrap().iter();
    let images: Vec<_> = images
        .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null())
        .map(|pod| pod["spec"]["containers"][0]["image"].as_str().unwrap())
        .collect();
    assert_eq!(images, ["debian"; 3]);
    cluster.ok("rollout undo deployment/web");
    cluster.ok("rollout status deployment/web --timeout=60s");
    assert_eq!(cluster.ok(image), "busybox");

    cluster.ok("rollout pause deployment/web");
    cluster.ok("set image deployment/web main=alpine");
    let paused = cluster.ok("get replicasets -o name");
    assert_eq!(paused.lines().count(), 2, "a paused deployment rolled out");
    cluster.ok("rollout resume deployment/web");
    cluster.ok("rollout status deployment/web --timeout=60s");
    assert_eq!(cluster.ok("get replicasets -o name").lines().count(), 3);
    let history = cluster.ok("rollout history deployment/web");
    assert!(
        history.lines().any(|line| line.starts_with("4 ")),
        "{history}"
    );
}

#[test]
fn an_unknown_image_is_reported_and_affects_no_other_pod() {
    let test = "an_unknown_image_is_reported_and_affects_no_other_pod";
    let Some(cluster) = KubectlCluster::up(test, &[]) else {
        return;
    };
    cluster.ok("run lost --image=example.com/nowhere:1");
    cluster.ok("run here --image=busybox --restart=Never -- true");
    cluster.ok("wait pod/here --for=jsonpath='{.status.phase}'=Succeeded --timeout=60s");
    let waiting = "{.status.containerStatuses[0].state.waiting.reason}";
    cluster.ok(&format!(
        "wait pod/lost --for=jsonpath='{waiting}' --timeout=60s"
    ));
    let description = cluster.ok("describe pod lost");
    assert!(
        description.contains("example.com/nowhere:1"),
        "{description}"
    );
    assert!(
        description.contains("--images"),
        "no remedy in {description}"
    );
}

#[test]
fn no_process_of_a_pod_survives_a_killed_server() {
    let test = "no_process_of_a_pod_survives_a_killed_server";
    for (attempt, moment) in ["starting", "running", "stopping"].into_iter().enumerate() {
        let Some(mut cluster) = KubectlCluster::up(test, &[]) else {
            return;
        };
        // A number of seconds that no other process uses.
        let seconds = 700_000 + std::process::id() % 10_000 * 10 + u32::try_from(attempt).unwrap();
        cluster.file("web.yaml", &sleeper(5, seconds));
        cluster.ok("apply -f web.yaml");
        match moment {
            "starting" => until("the first starts", || !sleepers(seconds).is_empty()),
            "running" => drop(cluster.ok("rollout status deployment/web --timeout=60s")),
            _ => {
                cluster.ok("rollout status deployment/web --timeout=60s");
                cluster.ok("delete deployment web --wait=false");
            }
        }
        cluster.kill();
        // One second, in polls.
        let mut polls = 0..100;
        while !sleepers(seconds).is_empty() && polls.next().is_some() {
            std::thread::park_timeout(Duration::from_millis(10));
        }
        assert_eq!(sleepers(seconds), [0_u32; 0], "left while {moment}");
    }
}

/// The processes that run `sleep` with this number of seconds.
fn sleepers(seconds: u32) -> Vec<u32> {
    let wanted = format!("sleep\0{seconds}\0");
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter(|process| {
            let line = std::fs::read(process.path().join("cmdline"));
            line.is_ok_and(|line| line == wanted.as_bytes())
        })
        .filter_map(|process| process.file_name().to_str()?.parse().ok())
        .collect()
}

#[track_caller]
pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..6000 {
        if is_so() {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    panic!("never: {what}");
}

#[test]
fn stored_workloads_run_again_after_a_restart() {
    let test = "stored_workloads_run_again_after_a_restart";
    let folder = tempfile::tempdir().unwrap();
    let data = ["--data", folder.path().to_str().unwrap()];
    let Some(mut first) = KubectlCluster::up(test, &data) else {
        return;
    };
    first.file("web.yaml", SAMPLE);
    first.ok("apply -f web.yaml");
    first.ok("rollout status deployment/web --timeout=60s");
    let address = first.ok("get service web -o jsonpath='{.spec.clusterIP}'");
    first.kill();
    let second = KubectlCluster::up(test, &data).unwrap();
    second.ok("rollout status deployment/web --timeout=60s");
    assert_eq!(
        address,
        second.ok("get service web -o jsonpath='{.spec.clusterIP}'")
    );
    until("it answers again", || {
        TcpStream::connect(format!("{address}:8080")).is_ok()
            && get(&format!("{address}:8080")).contains("hello from web-")
    });
}
