use std::{collections::BTreeMap, time::Duration};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::*;

/// A pod simulated on virtual time: a container that is started runs until the script says
/// otherwise.
struct Simulation {
    facts: Facts,
    /// The actions, each with its second.
    log: Vec<String>,
    start: Timestamp,
    /// The lifetime of a container in seconds, and its exit code; it runs forever if it is not
    /// here.
    lives: BTreeMap<String, (i64, i32)>,
    /// Containers that ignore termination.
    stubborn: Vec<String>,
}

impl Simulation {
    fn new(spec: &Value) -> Self {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let pod: Pod =
            serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).unwrap();
        let facts = Facts {
            pod,
            containers: BTreeMap::new(),
            address: [127, 1, 1, 2].into(),
            node_address: [127, 1, 0, 1].into(),
            accepted: start,
            volumes: Ok(()),
            ending_since: None,
            now: start,
        };
        Self {
            facts,
            log: Vec::new(),
            start,
            lives: BTreeMap::new(),
            stubborn: Vec::new(),
        }
    }

    fn lives(mut self, container: &str, seconds: i64, code: i32) -> Self {
        self.lives.insert(container.to_owned(), (seconds, code));
        self
    }

    fn record(&mut self, what: &str, container: &str) {
        let second = self.facts.now.duration_since(self.start).as_secs();
        self.log.push(format!("{second}: {what} {container}"));
    }

    /// Lets `seconds` pass, one by one, and returns the last decision.
    fn pass(&mut self, seconds: i64) -> Decision {
        let mut decision = self.act();
        for _ in 0..seconds {
            self.facts.now += SignedDuration::from_secs(1);
            self.end_what_is_due();
            decision = self.act();
        }
        decision
    }

    fn act(&mut self) -> Decision {
        loop {
            let decision = decide(&self.facts);
            self.facts.pod.status = Some(decision.status.clone());
            for name in &decision.start {
                self.record("start", name);
                let observed = self.facts.containers.entry(name.clone()).or_default();
                observed.record_start("1".into(), self.facts.now, false);
                observed.ready = true;
            }
            for (name, how) in &decision.stop {
                self.record(
                    if *how == StopMode::Terminate {
                        "ask"
                    } else {
                        "kill"
                    },
                    name,
                );
                let now = self.facts.now;
                let obeys = *how == StopMode::Kill || !self.stubborn.contains(name);
                let observed = self.facts.containers.get_mut(name).unwrap();
                observed.stop_requested_at = Some(now);
                if obeys {
                    observed.record_end(if *how == StopMode::Kill { 137 } else { 143 }, now);
                }
            }
            if decision.start.is_empty() && decision.stop.is_empty() {
                return decision;
            }
        }
    }

    fn end_what_is_due(&mut self) {
        let now = self.facts.now;
        for (name, observed) in &mut self.facts.containers {
            if let (ProcessState::Running { since, .. }, Some(&(seconds, code))) =
                (&observed.process, self.lives.get(name))
                && now.duration_since(*since).as_secs() >= seconds
            {
                observed.record_end(code, now);
            }
        }
    }
}

fn phase(decision: &Decision) -> &str {
    decision.status.phase.as_deref().unwrap()
}

fn condition(decision: &Decision, kind: &str) -> (String, String) {
    let conditions = decision.status.conditions.as_ref().unwrap();
    let found = conditions.iter().find(|one| one.type_ == kind).unwrap();
    let reason = found.reason.clone().unwrap_or_default();
    (found.status.clone(), reason)
}

#[test]
fn init_containers_come_first_and_one_after_another() {
    let spec = json!({
        "initContainers": [{"name": "a"}, {"name": "side", "restartPolicy": "Always"}, {"name": "b"}],
        "containers": [{"name": "main"}, {"name": "other"}],
    });
    let mut simulation = Simulation::new(&spec).lives("a", 3, 0).lives("b", 2, 0);
    let early = simulation.pass(1);
    assert_eq!(phase(&early), "Pending");
    assert_eq!(
        condition(&early, "Initialized"),
        ("False".into(), "ContainersNotInitialized".into())
    );
    let late = simulation.pass(9);
    assert_eq!(phase(&late), "Running");
    assert_eq!(condition(&late, "Ready").0, "True");
    let expected = [
        "0: start a",
        "3: start side",
        "3: start b",
        "5: start main",
        "5: start other",
    ];
    assert_eq!(simulation.log, expected);
}

#[test]
fn a_container_that_keeps_ending_backs_off() {
    let spec = json!({"containers": [{"name": "main"}]});
    let mut simulation = Simulation::new(&spec).lives("main", 1, 1);
    let decision = simulation.pass(120);
    let starts = ["0", "1", "12", "33", "74"].map(|second| format!("{second}: start main"));
    assert_eq!(simulation.log, starts);
    let status = &decision.status.container_statuses.as_ref().unwrap()[0];
    let waiting = status.state.as_ref().unwrap().waiting.as_ref().unwrap();
    assert_eq!(waiting.reason.as_deref(), Some("CrashLoopBackOff"));
    let message = "back-off 80s restarting failed container=main pod=p";
    assert_eq!(waiting.message.as_deref(), Some(message));
    assert_eq!(status.restart_count, 4);
    let last = status
        .last_state
        .as_ref()
        .unwrap()
        .terminated
        .as_ref()
        .unwrap();
    assert_eq!((last.exit_code, last.reason.as_deref()), (1, Some("Error")));
}

#[test]
fn restart_policies_determine_when_a_pod_ends() {
    for (policy, code, starts, expected) in [
        ("Always", 0, 2, "Running"),
        ("OnFailure", 0, 1, "Succeeded"),
        ("OnFailure", 1, 2, "Running"),
        ("Never", 0, 1, "Succeeded"),
        ("Never", 1, 1, "Failed"),
    ] {
        let spec = json!({"restartPolicy": policy, "containers": [{"name": "main"}]});
        let mut simulation = Simulation::new(&spec).lives("main", 5, code);
        let decision = simulation.pass(6);
        assert_eq!(
            (simulation.log.len(), phase(&decision)),
            (starts, expected),
            "{policy} {code}"
        );
    }
}

#[test]
fn a_failed_init_container_fails_a_pod_that_never_restarts() {
    let spec = json!({"restartPolicy": "Never", "initContainers": [{"name": "a"}], "containers": [{"name": "main"}]});
    let mut simulation = Simulation::new(&spec).lives("a", 1, 4);
    let decision = simulation.pass(3);
    assert_eq!(phase(&decision), "Failed");
    assert_eq!(simulation.log, ["0: start a"]);
}

#[test]
fn a_deleted_pod_is_terminated_and_then_killed_with_its_sidecars_last() {
    let spec = json!({
        "terminationGracePeriodSeconds": 5,
        "initContainers": [{"name": "one", "restartPolicy": "Always"}, {"name": "two", "restartPolicy": "Always"}],
        "containers": [{"name": "main"}, {"name": "other"}],
    });
    let mut simulation = Simulation::new(&spec);
    simulation.stubborn = vec!["main".into()];
    simulation.pass(1);
    simulation.log.clear();
    simulation.facts.ending_since = Some(simulation.facts.now);
    let halfway = simulation.pass(2);
    assert!(!halfway.gone);
    let gone = simulation.pass(5);
    assert!(gone.gone);
    assert_eq!(gone.requeue_after, None);
    let expected = [
        "1: ask main",
        "1: ask other",
        "6: kill main",
        "6: kill two",
        "6: kill one",
    ];
    assert_eq!(simulation.log, expected);
}

#[test]
fn a_pod_whose_name_is_reused_stays_until_its_deletion_is_visible() {
    for (owner, at_once) in [
        (json!(null), true),
        (json!([{"kind": "ReplicaSet", "controller": true}]), true),
        (json!([{"kind": "Job", "controller": true}]), true),
        (json!([{"kind": "StatefulSet", "controller": true}]), false),
        (json!([{"kind": "Custom", "controller": true}]), false),
        (json!([{"kind": "Custom"}]), true),
    ] {
        let mut simulation = Simulation::new(&json!({"containers": [{"name": "main"}]}));
        let mut metadata = json!({"name": "p", "ownerReferences": owner});
        for reference in metadata["ownerReferences"]
            .as_array_mut()
            .into_iter()
            .flatten()
        {
            reference["apiVersion"] = "v1".into();
            reference["name"] = "o".into();
            reference["uid"] = "u".into();
        }
        simulation.facts.pod.metadata = serde_json::from_value(metadata).unwrap();
        simulation.pass(1);
        simulation.facts.ending_since = Some(simulation.facts.now);
        let ended = simulation.pass(0);
        assert_eq!(simulation.log, ["0: start main", "1: ask main"], "{owner}");
        assert_eq!(ended.gone, at_once, "{owner}");
        let expected = (!at_once).then_some(Duration::from_secs(1));
        assert_eq!(ended.requeue_after, expected, "{owner}");
        assert!(simulation.pass(1).gone, "{owner}");
    }
}

#[test]
fn a_killed_container_that_does_not_end_is_killed_again() {
    let spec = json!({"terminationGracePeriodSeconds": 1, "containers": [{"name": "main"}]});
    let mut simulation = Simulation::new(&spec);
    simulation.pass(0);
    simulation.facts.ending_since = Some(simulation.facts.now);
    simulation.facts.now += SignedDuration::from_secs(1);
    for _ in 0..3 {
        // The kill has no effect.
        let decision = decide(&simulation.facts);
        assert_eq!(decision.stop, [("main".to_owned(), StopMode::Kill)]);
        assert_eq!(decision.requeue_after, Some(Duration::from_secs(1)));
        assert!(!decision.gone);
        simulation.facts.now += SignedDuration::from_secs(1);
    }
}

#[test]
fn sidecars_end_after_the_main_containers() {
    let spec = json!({
        "restartPolicy": "Never",
        "initContainers": [{"name": "side", "restartPolicy": "Always"}],
        "containers": [{"name": "main"}],
    });
    let mut simulation = Simulation::new(&spec).lives("main", 3, 0);
    let decision = simulation.pass(5);
    assert_eq!(phase(&decision), "Succeeded");
    assert_eq!(
        simulation.log,
        ["0: start side", "0: start main", "3: ask side"]
    );
    assert_eq!(
        condition(&decision, "Ready"),
        ("False".into(), "PodCompleted".into())
    );
}

#[test]
fn an_unhealthy_container_is_restarted() {
    let mut simulation = Simulation::new(&json!({"containers": [{"name": "main"}]}));
    simulation.pass(2);
    let observed = simulation.facts.containers.get_mut("main").unwrap();
    observed.unhealthy = Some("Container main failed liveness probe, will be restarted".into());
    simulation.pass(1);
    assert_eq!(
        simulation.log,
        ["0: start main", "2: ask main", "2: start main"]
    );
    let before = simulation.facts.containers["main"]
        .previous
        .clone()
        .unwrap();
    assert!(before.message.unwrap().contains("liveness"));
}

#[test]
fn a_pod_fails_after_its_active_deadline() {
    let spec = json!({"activeDeadlineSeconds": 10, "terminationGracePeriodSeconds": 1, "containers": [{"name": "main"}]});
    let mut simulation = Simulation::new(&spec);
    let early = simulation.pass(4);
    assert_eq!(early.requeue_after, Some(Duration::from_secs(6)));
    let late = simulation.pass(8);
    assert_eq!(phase(&late), "Failed");
    assert_eq!(late.status.reason.as_deref(), Some("DeadlineExceeded"));
    assert_eq!(simulation.log, ["0: start main", "10: ask main"]);
}

#[test]
fn nothing_starts_before_the_volumes_are_mounted() {
    let mut simulation = Simulation::new(&json!({"containers": [{"name": "main"}]}));
    simulation.facts.volumes = Err(WaitingReason {
        reason: "FailedMount",
        message: "configmap \"c\" not found".into(),
    });
    let decision = simulation.pass(3);
    assert!(simulation.log.is_empty());
    let status = &decision.status.container_statuses.as_ref().unwrap()[0];
    let waiting = status.state.as_ref().unwrap().waiting.as_ref().unwrap();
    assert_eq!(waiting.reason.as_deref(), Some("ContainerCreating"));
    assert_eq!(
        waiting.message.as_deref(),
        Some("configmap \"c\" not found")
    );
}

#[test]
fn a_condition_keeps_its_time_while_it_stays_as_it_is() {
    let mut simulation = Simulation::new(&json!({"containers": [{"name": "main"}]}));
    let first = simulation.pass(1);
    let later = simulation.pass(60);
    assert_eq!(first.status.conditions, later.status.conditions);
    simulation.facts.containers.get_mut("main").unwrap().ready = false;
    let unready = simulation.pass(1);
    assert_eq!(
        condition(&unready, "Ready"),
        ("False".into(), "ContainersNotReady".into())
    );
}

#[test]
fn a_status_survives_serialization() {
    let mut simulation =
        Simulation::new(&json!({"containers": [{"name": "main"}, {"name": "brief"}]}));
    simulation.facts.now += SignedDuration::from_millis(1234);
    simulation.facts.accepted = simulation.facts.now;
    let mut simulation = simulation.lives("brief", 1, 1);
    for seconds in [1, 2, 30] {
        let status = simulation.pass(seconds).status;
        // As the API server stores it: without fractions of a second.
        let mut stored = serde_json::to_value(&status).unwrap().to_string();
        while let Some(dot) = stored.find(".234") {
            let end = dot + stored[dot..].find('Z').unwrap();
            stored.replace_range(dot..end, "");
        }
        let read: k8s_openapi::api::core::v1::PodStatus = serde_json::from_str(&stored).unwrap();
        assert_eq!(status, read);
    }
}
