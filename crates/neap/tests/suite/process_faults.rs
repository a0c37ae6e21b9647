//! Each fault class of the trial, once with real processes: `neap up` as the server, controllers in
//! separate processes, sockets, SIGKILL and SIGSTOP. These tests would fail if the results of the trial,
//! in one process under a paused clock, did not hold for real processes.
//!
//! Each test names the plan in `proof/campaign` that it repeats.

mod controller_process;
mod fault_proxy;
mod fault_server;

use std::sync::Arc;

use controller_process::{ControllerProcess, run_as_controllers};
use fault_proxy::RequestAction;
use parking_lot::Mutex;
use serde_json::json;

/// The test that controller processes are started as.
const CONTROLLER_TEST: &str = "process_faults::controllers_reconcile_in_a_separate_process";

#[test]
fn controllers_reconcile_in_a_separate_process() {
    if run_as_controllers() {
        return;
    }
    fault_server::run(|server| async move {
        let proxy = server.proxy().await;
        let _controllers = ControllerProcess::start(&proxy.url, None);
        server.create_set("default", 3).await;
        server.reconciled("default", 3).await;
        assert_eq!(proxy.created("pods"), 3);
    });
}

#[test]
fn a_crash_between_two_writes() {
    fault_server::matches_plan("crash-between-two-writes");
    fault_server::run(|server| async move {
        let proxy = server.proxy().await;
        let mut seen = 0;
        proxy.rule(move |request| {
            seen += usize::from(request.has_created("pods"));
            // The third pod is created, and its controller never gets the response.
            hold_if(request.has_created("pods") && seen == 3)
        });
        let mut controllers = ControllerProcess::start(&proxy.url, None);
        server.create_set("default", 6).await;
        proxy.holds().await;
        controllers.kill();
        let left = server.pods("default").await;
        assert!((3..6).contains(&left), "{left} pods when it died");
        proxy.rule(|_| RequestAction::Pass);
        let _again = ControllerProcess::start(&proxy.url, None);
        server.reconciled("default", 6).await;
        assert_eq!(proxy.created("pods"), 6, "no pod was created twice");
    });
}

#[test]
fn a_stale_view_after_a_restart() {
    fault_server::matches_plan("stale-after-a-restart");
    fault_server::run(|server| async move {
        let proxy = server.proxy().await;
        let mut controllers = ControllerProcess::start(&proxy.url, None);
        server.create_set("default", 3).await;
        server.reconciled("default", 3).await;
        controllers.kill();
        proxy.block_watches("replicasets");
        let _again = ControllerProcess::start(&proxy.url, None);
        proxy.watches("pods").await;
        proxy.watches("replicasets").await;
        // The controllers have listed the ReplicaSet, and do not observe its deletion.
        server.delete_set("default").await;
        // They are about to create pods for it, and first read it from the server.
        proxy.reads("/replicasets/web").await;
        server.pods_are("default", 0).await;
        proxy.rereads("/replicasets/web").await;
        assert_eq!(proxy.created("pods"), 3, "none for a set that is gone");
        proxy.unblock_watches();
        server.create_set("default", 2).await;
        server.reconciled("default", 2).await;
        assert_eq!(proxy.created("pods"), 5);
    });
}

#[test]
fn a_delayed_watch_event() {
    fault_server::matches_plan("deleted-while-the-watch-is-late");
    fault_server::run(|server| async move {
        let proxy = server.proxy().await;
        let _controllers = ControllerProcess::start(&proxy.url, None);
        server.create_deployment(2).await;
        server.pods_are("default", 2).await;
        proxy.block_watches("deployments");
        server.delete_deployment().await;
        proxy.reads("/deployments/web").await;
        server.pods_are("default", 0).await;
        proxy.rereads("/deployments/web").await;
        let made = (proxy.created("replicasets"), proxy.created("pods"));
        assert_eq!(made, (1, 2), "nothing for a Deployment that is gone");
        proxy.unblock_watches();
        server.create_deployment(1).await;
        server.pods_are("default", 1).await;
    });
}

#[test]
fn a_refused_write_and_an_unanswered_write() {
    fault_server::matches_plan("refused-then-unanswered");
    fault_server::run(|server| async move {
        let proxy = server.proxy().await;
        let (mut asked_for, mut made) = (0, 0);
        proxy.rule(move |request| {
            asked_for += usize::from(request.creates("pods"));
            made += usize::from(request.has_created("pods"));
            match (request.creates("pods"), request.has_created("pods")) {
                (true, _) if asked_for == 1 => RequestAction::Refuse(500),
                (_, true) if made == 2 => RequestAction::Disconnect,
                _ => RequestAction::Pass,
            }
        });
        let _controllers = ControllerProcess::start(&proxy.url, None);
        server.create_set("default", 4).await;
        server.reconciled("default", 4).await;
        assert_eq!(proxy.created("pods"), 4, "no pod was created twice");
    });
}

#[test]
fn a_paused_leader_that_resumes() {
    fault_server::matches_plan("leader-paused-at-a-write");
    fault_server::run(|server| async move {
        let (first, second) = (server.proxy().await, server.proxy().await);
        first.rule(|request| hold_if(request.creates("pods")));
        let leader = ControllerProcess::start(&first.url, Some("first"));
        server.led_by("first").await;
        let _follower = ControllerProcess::start(&second.url, Some("second"));
        server.create_set("default", 3).await;
        first.holds().await;
        leader.stop();
        server.led_by("second").await;
        server.reconciled("default", 3).await;
        let before = first.writes();
        leader.resume();
        // The held request arrives now, for a pod that exists already.
        first.release();
        server.settle().await;
        assert_eq!(first.writes(), before, "a former leader writes nothing");
        assert_eq!(server.pods("default").await, 3);
        assert_eq!(second.created("pods"), 3);
    });
}

#[test]
fn a_killed_leader_is_replaced() {
    fault_server::matches_plan("leader-dies-between-two-writes");
    fault_server::run(|server| async move {
        let (first, second) = (server.proxy().await, server.proxy().await);
        first.rule(|request| hold_if(request.has_created("pods")));
        let mut leader = ControllerProcess::start(&first.url, Some("first"));
        server.led_by("first").await;
        let _follower = ControllerProcess::start(&second.url, Some("second"));
        server.create_set("default", 3).await;
        first.holds().await;
        leader.kill();
        server.led_by("second").await;
        server.reconciled("default", 3).await;
        assert_eq!(
            first.created("pods") + second.created("pods"),
            3,
            "no pod was created twice"
        );
    });
}

#[test]
fn a_poisoned_object_beside_others() {
    fault_server::matches_plan("poisoned-object-beside-others");
    fault_server::run(|server| async move {
        let proxy = server.proxy().await;
        let refused = Arc::new(Mutex::new(0));
        let counted = refused.clone();
        proxy.rule(move |request| {
            let poisoned = request.path.contains("/namespaces/poison/") && request.is_write();
            *counted.lock() += usize::from(poisoned);
            if poisoned {
                RequestAction::Refuse(422)
            } else {
                RequestAction::Pass
            }
        });
        let _controllers = ControllerProcess::start(&proxy.url, None);
        let space =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "poison"}});
        server.post("/api/v1/namespaces", &space).await;
        server.create_set("poison", 3).await;
        fault_server::until("the poisoned one was tried", || async {
            *refused.lock() > 0
        })
        .await;
        server.create_set("default", 3).await;
        server.reconciled("default", 3).await;
        assert_eq!(server.pods("poison").await, 0);
        assert_eq!(proxy.created("pods"), 3);
        let tried = *refused.lock();
        fault_server::until("it is tried again", || async { *refused.lock() > tried }).await;
    });
}

fn hold_if(so: bool) -> RequestAction {
    if so {
        RequestAction::Hold
    } else {
        RequestAction::Pass
    }
}
