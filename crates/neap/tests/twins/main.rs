//! Each way in which the trial breaks controllers, once with real processes: `neap up` as the server,
//! controllers in processes of their own, sockets, SIGKILL and SIGSTOP. If what the trial shows in
//! one process under a paused clock were not so out here, one of these would tell.
//!
//! Each names the plan that it is the twin of; those are in `crates/faults`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod controllers;
mod relay;
mod stage;

use std::sync::Arc;

use controllers::{Controllers, play_the_part};
use parking_lot::Mutex;
use relay::Fate;
use serde_json::json;

/// The test that is also what controllers are started as.
const ROLE: &str = "controllers_do_their_work_in_a_process_of_their_own";

#[test]
fn controllers_do_their_work_in_a_process_of_their_own() {
    if play_the_part() {
        return;
    }
    stage::run(|stage| async move {
        let relay = stage.relay().await;
        let _controllers = Controllers::start(&relay.url, None);
        stage.create_set("default", 3).await;
        stage.settled("default", 3).await;
        assert_eq!(relay.made("pods"), 3);
    });
}

#[test]
fn a_crash_between_two_writes() {
    stage::twin_of("crash-between-two-writes");
    stage::run(|stage| async move {
        let relay = stage.relay().await;
        let mut seen = 0;
        relay.rule(move |asked| {
            seen += usize::from(asked.has_made("pods"));
            // The third is made, and whoever made it is never told.
            keep_if(asked.has_made("pods") && seen == 3)
        });
        let mut controllers = Controllers::start(&relay.url, None);
        stage.create_set("default", 6).await;
        relay.keeps().await;
        controllers.kill();
        let left = stage.pods("default").await;
        assert!((3..6).contains(&left), "{left} pods when it died");
        relay.rule(|_| Fate::Pass);
        let _again = Controllers::start(&relay.url, None);
        stage.settled("default", 6).await;
        assert_eq!(relay.made("pods"), 6, "none was made twice");
    });
}

#[test]
fn a_stale_view_after_a_restart() {
    stage::twin_of("stale-after-a-restart");
    stage::run(|stage| async move {
        let relay = stage.relay().await;
        let mut controllers = Controllers::start(&relay.url, None);
        stage.create_set("default", 3).await;
        stage.settled("default", 3).await;
        controllers.kill();
        relay.deafen("replicasets");
        let _again = Controllers::start(&relay.url, None);
        relay.follows("pods").await;
        relay.follows("replicasets").await;
        // It saw the set when it began, and is not told that it has gone.
        stage.delete_set("default").await;
        // It is about to make pods for it, and asks the server first.
        relay.reads("/replicasets/web").await;
        stage.pods_are("default", 0).await;
        relay.looks_again("/replicasets/web").await;
        assert_eq!(relay.made("pods"), 3, "none for a set that is gone");
        relay.hear();
        stage.create_set("default", 2).await;
        stage.settled("default", 2).await;
        assert_eq!(relay.made("pods"), 5);
    });
}

#[test]
fn an_event_that_comes_late() {
    stage::twin_of("deleted-while-the-watch-is-late");
    stage::run(|stage| async move {
        let relay = stage.relay().await;
        let _controllers = Controllers::start(&relay.url, None);
        stage.create_deployment(2).await;
        stage.pods_are("default", 2).await;
        relay.deafen("deployments");
        stage.delete_deployment().await;
        relay.reads("/deployments/web").await;
        stage.pods_are("default", 0).await;
        relay.looks_again("/deployments/web").await;
        let made = (relay.made("replicasets"), relay.made("pods"));
        assert_eq!(made, (1, 2), "nothing for a Deployment that is gone");
        relay.hear();
        stage.create_deployment(1).await;
        stage.pods_are("default", 1).await;
    });
}

#[test]
fn a_write_that_is_refused_and_one_that_is_not_answered() {
    stage::twin_of("refused-then-unanswered");
    stage::run(|stage| async move {
        let relay = stage.relay().await;
        let (mut asked_for, mut made) = (0, 0);
        relay.rule(move |asked| {
            asked_for += usize::from(asked.makes("pods"));
            made += usize::from(asked.has_made("pods"));
            match (asked.makes("pods"), asked.has_made("pods")) {
                (true, _) if asked_for == 1 => Fate::Refuse(500),
                (_, true) if made == 2 => Fate::Vanish,
                _ => Fate::Pass,
            }
        });
        let _controllers = Controllers::start(&relay.url, None);
        stage.create_set("default", 4).await;
        stage.settled("default", 4).await;
        assert_eq!(relay.made("pods"), 4, "none was made twice");
    });
}

#[test]
fn a_leader_that_is_stopped_and_goes_on() {
    stage::twin_of("leader-paused-at-a-write");
    stage::run(|stage| async move {
        let (first, second) = (stage.relay().await, stage.relay().await);
        first.rule(|asked| keep_if(asked.makes("pods")));
        let leader = Controllers::start(&first.url, Some("first"));
        stage.led_by("first").await;
        let _follower = Controllers::start(&second.url, Some("second"));
        stage.create_set("default", 3).await;
        first.keeps().await;
        leader.stop();
        stage.led_by("second").await;
        stage.settled("default", 3).await;
        let before = first.writes();
        leader.go_on();
        // What it had sent arrives now, and is about a pod that is there.
        first.release();
        stage.change_of_mind().await;
        assert_eq!(
            first.writes(),
            before,
            "it leads no longer, and writes nothing"
        );
        assert_eq!(stage.pods("default").await, 3);
        assert_eq!(second.made("pods"), 3);
    });
}

#[test]
fn a_leader_that_is_killed_and_followed() {
    stage::twin_of("leader-dies-between-two-writes");
    stage::run(|stage| async move {
        let (first, second) = (stage.relay().await, stage.relay().await);
        first.rule(|asked| keep_if(asked.has_made("pods")));
        let mut leader = Controllers::start(&first.url, Some("first"));
        stage.led_by("first").await;
        let _follower = Controllers::start(&second.url, Some("second"));
        stage.create_set("default", 3).await;
        first.keeps().await;
        leader.kill();
        stage.led_by("second").await;
        stage.settled("default", 3).await;
        assert_eq!(
            first.made("pods") + second.made("pods"),
            3,
            "none was made twice"
        );
    });
}

#[test]
fn a_poisoned_object_beside_others() {
    stage::twin_of("poisoned-object-beside-others");
    stage::run(|stage| async move {
        let relay = stage.relay().await;
        let refused = Arc::new(Mutex::new(0));
        let counted = refused.clone();
        relay.rule(move |asked| {
            let poisoned = asked.path.contains("/namespaces/poison/") && asked.is_a_write();
            *counted.lock() += usize::from(poisoned);
            if poisoned {
                Fate::Refuse(422)
            } else {
                Fate::Pass
            }
        });
        let _controllers = Controllers::start(&relay.url, None);
        let space =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "poison"}});
        stage.post("/api/v1/namespaces", &space).await;
        stage.create_set("poison", 3).await;
        stage::until("the poisoned one was tried", || async {
            *refused.lock() > 0
        })
        .await;
        stage.create_set("default", 3).await;
        stage.settled("default", 3).await;
        assert_eq!(stage.pods("poison").await, 0);
        assert_eq!(relay.made("pods"), 3);
        let tried = *refused.lock();
        stage::until("it is tried again", || async { *refused.lock() > tried }).await;
    });
}

fn keep_if(so: bool) -> Fate {
    if so { Fate::Keep } else { Fate::Pass }
}
