use std::{collections::BTreeMap, time::Duration};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::*;

/// A pod, played on virtual time: what is started runs until the script says otherwise.
struct Play {
    facts: Facts,
    /// What was done, with the second in which it was.
    log: Vec<String>,
    start: Timestamp,
    /// How many seconds a container runs, and its exit code; for ever if it is not here.
    lives: BTreeMap<String, (i64, i32)>,
    /// Containers that do not end when they are asked to.
    stubborn: Vec<String>,
}

impl Play {
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

    fn note(&mut self, what: &str, container: &str) {
        let second = self.facts.now.duration_since(self.start).as_secs();
        self.log.push(format!("{second}: {what} {container}"));
    }

    /// Lets `seconds` pass, one by one, and returns what was decided last.
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
                self.note("start", name);
                let seen = self.facts.containers.entry(name.clone()).or_default();
                seen.begin("1".into(), self.facts.now, false);
                seen.ready = true;
            }
            for (name, how) in &decision.stop {
                self.note(if *how == Stop::Ask { "ask" } else { "kill" }, name);
                let now = self.facts.now;
                let obeys = *how == Stop::Kill || !self.stubborn.contains(name);
                let seen = self.facts.containers.get_mut(name).unwrap();
                seen.asked_to_end = Some(now);
                if obeys {
                    seen.note_end(if *how == Stop::Kill { 137 } else { 143 }, now);
                }
            }
            if decision.start.is_empty() && decision.stop.is_empty() {
                return decision;
            }
        }
    }

    fn end_what_is_due(&mut self) {
        let now = self.facts.now;
        for (name, seen) in &mut self.facts.containers {
            if let (Process::Running { since, .. }, Some(&(seconds, code))) =
                (&seen.process, self.lives.get(name))
                && now.duration_since(*since).as_secs() >= seconds
            {
                seen.note_end(code, now);
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
    let mut play = Play::new(&spec).lives("a", 3, 0).lives("b", 2, 0);
    let early = play.pass(1);
    assert_eq!(phase(&early), "Pending");
    assert_eq!(
        condition(&early, "Initialized"),
        ("False".into(), "ContainersNotInitialized".into())
    );
    let late = play.pass(9);
    assert_eq!(phase(&late), "Running");
    assert_eq!(condition(&late, "Ready").0, "True");
    let expected = [
        "0: start a",
        "3: start side",
        "3: start b",
        "5: start main",
        "5: start other",
    ];
    assert_eq!(play.log, expected);
}

#[test]
fn a_container_that_keeps_ending_waits_longer_each_time() {
    let spec = json!({"containers": [{"name": "main"}]});
    let mut play = Play::new(&spec).lives("main", 1, 1);
    let decision = play.pass(120);
    let starts = ["0", "1", "12", "33", "74"].map(|second| format!("{second}: start main"));
    assert_eq!(play.log, starts);
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
fn restart_policies_say_what_ends_a_pod() {
    for (policy, code, starts, expected) in [
        ("Always", 0, 2, "Running"),
        ("OnFailure", 0, 1, "Succeeded"),
        ("OnFailure", 1, 2, "Running"),
        ("Never", 0, 1, "Succeeded"),
        ("Never", 1, 1, "Failed"),
    ] {
        let spec = json!({"restartPolicy": policy, "containers": [{"name": "main"}]});
        let mut play = Play::new(&spec).lives("main", 5, code);
        let decision = play.pass(6);
        assert_eq!(
            (play.log.len(), phase(&decision)),
            (starts, expected),
            "{policy} {code}"
        );
    }
}

#[test]
fn a_failed_init_container_fails_a_pod_that_is_not_tried_again() {
    let spec = json!({"restartPolicy": "Never", "initContainers": [{"name": "a"}], "containers": [{"name": "main"}]});
    let mut play = Play::new(&spec).lives("a", 1, 4);
    let decision = play.pass(3);
    assert_eq!(phase(&decision), "Failed");
    assert_eq!(play.log, ["0: start a"]);
}

#[test]
fn a_pod_that_goes_is_asked_and_then_killed_with_its_sidecars_last() {
    let spec = json!({
        "terminationGracePeriodSeconds": 5,
        "initContainers": [{"name": "one", "restartPolicy": "Always"}, {"name": "two", "restartPolicy": "Always"}],
        "containers": [{"name": "main"}, {"name": "other"}],
    });
    let mut play = Play::new(&spec);
    play.stubborn = vec!["main".into()];
    play.pass(1);
    play.log.clear();
    play.facts.ending_since = Some(play.facts.now);
    let halfway = play.pass(2);
    assert!(!halfway.gone);
    let gone = play.pass(5);
    assert!(gone.gone);
    assert_eq!(gone.again, None);
    let expected = [
        "1: ask main",
        "1: ask other",
        "6: kill main",
        "6: kill two",
        "6: kill one",
    ];
    assert_eq!(play.log, expected);
}

#[test]
fn a_pod_whose_successor_has_its_name_stays_until_that_is_noticed() {
    for (owner, at_once) in [
        (json!(null), true),
        (json!([{"kind": "ReplicaSet", "controller": true}]), true),
        (json!([{"kind": "Job", "controller": true}]), true),
        (json!([{"kind": "StatefulSet", "controller": true}]), false),
        (json!([{"kind": "Keeper", "controller": true}]), false),
        (json!([{"kind": "Keeper"}]), true),
    ] {
        let mut play = Play::new(&json!({"containers": [{"name": "main"}]}));
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
        play.facts.pod.metadata = serde_json::from_value(metadata).unwrap();
        play.pass(1);
        play.facts.ending_since = Some(play.facts.now);
        let ended = play.pass(0);
        assert_eq!(play.log, ["0: start main", "1: ask main"], "{owner}");
        assert_eq!(ended.gone, at_once, "{owner}");
        let expected = (!at_once).then_some(Duration::from_secs(1));
        assert_eq!(ended.again, expected, "{owner}");
        assert!(play.pass(1).gone, "{owner}");
    }
}

#[test]
fn whoever_is_killed_and_does_not_end_is_killed_again() {
    let spec = json!({"terminationGracePeriodSeconds": 1, "containers": [{"name": "main"}]});
    let mut play = Play::new(&spec);
    play.pass(0);
    play.facts.ending_since = Some(play.facts.now);
    play.facts.now += SignedDuration::from_secs(1);
    for _ in 0..3 {
        // Nothing comes of it.
        let decision = decide(&play.facts);
        assert_eq!(decision.stop, [("main".to_owned(), Stop::Kill)]);
        assert_eq!(decision.again, Some(Duration::from_secs(1)));
        assert!(!decision.gone);
        play.facts.now += SignedDuration::from_secs(1);
    }
}

#[test]
fn sidecars_end_after_the_work_is_done() {
    let spec = json!({
        "restartPolicy": "Never",
        "initContainers": [{"name": "side", "restartPolicy": "Always"}],
        "containers": [{"name": "main"}],
    });
    let mut play = Play::new(&spec).lives("main", 3, 0);
    let decision = play.pass(5);
    assert_eq!(phase(&decision), "Succeeded");
    assert_eq!(play.log, ["0: start side", "0: start main", "3: ask side"]);
    assert_eq!(
        condition(&decision, "Ready"),
        ("False".into(), "PodCompleted".into())
    );
}

#[test]
fn a_sick_container_is_stopped_and_started_again() {
    let mut play = Play::new(&json!({"containers": [{"name": "main"}]}));
    play.pass(2);
    let seen = play.facts.containers.get_mut("main").unwrap();
    seen.sick = Some("Container main failed liveness probe, will be restarted".into());
    play.pass(1);
    assert_eq!(play.log, ["0: start main", "2: ask main", "2: start main"]);
    let before = play.facts.containers["main"].before.clone().unwrap();
    assert!(before.message.unwrap().contains("liveness"));
}

#[test]
fn a_pod_has_only_so_much_time() {
    let spec = json!({"activeDeadlineSeconds": 10, "terminationGracePeriodSeconds": 1, "containers": [{"name": "main"}]});
    let mut play = Play::new(&spec);
    let early = play.pass(4);
    assert_eq!(early.again, Some(Duration::from_secs(6)));
    let late = play.pass(8);
    assert_eq!(phase(&late), "Failed");
    assert_eq!(late.status.reason.as_deref(), Some("DeadlineExceeded"));
    assert_eq!(play.log, ["0: start main", "10: ask main"]);
}

#[test]
fn nothing_starts_before_the_volumes_are_in_place() {
    let mut play = Play::new(&json!({"containers": [{"name": "main"}]}));
    play.facts.volumes = Err(Obstacle {
        reason: "FailedMount",
        message: "configmap \"c\" not found".into(),
    });
    let decision = play.pass(3);
    assert!(play.log.is_empty());
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
    let mut play = Play::new(&json!({"containers": [{"name": "main"}]}));
    let first = play.pass(1);
    let later = play.pass(60);
    assert_eq!(first.status.conditions, later.status.conditions);
    play.facts.containers.get_mut("main").unwrap().ready = false;
    let unready = play.pass(1);
    assert_eq!(
        condition(&unready, "Ready"),
        ("False".into(), "ContainersNotReady".into())
    );
}

#[test]
fn what_is_said_is_what_is_read_again() {
    let mut play = Play::new(&json!({"containers": [{"name": "main"}, {"name": "brief"}]}));
    play.facts.now += SignedDuration::from_millis(1234);
    play.facts.accepted = play.facts.now;
    let mut play = play.lives("brief", 1, 1);
    for seconds in [1, 2, 30] {
        let said = play.pass(seconds).status;
        // As the server keeps it: without fractions of a second.
        let mut kept = serde_json::to_value(&said).unwrap().to_string();
        while let Some(dot) = kept.find(".234") {
            let end = dot + kept[dot..].find('Z').unwrap();
            kept.replace_range(dot..end, "");
        }
        let read: k8s_openapi::api::core::v1::PodStatus = serde_json::from_str(&kept).unwrap();
        assert_eq!(said, read);
    }
}
