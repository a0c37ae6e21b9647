//! Requests that a bare server does not support: kubectl reports them, and nothing hangs.

use super::kubectl_cluster::KubectlCluster;

#[test]
fn unsupported_requests_are_refused_with_a_message() {
    let Some(cluster) = KubectlCluster::start("unsupported_requests_are_refused_with_a_message")
    else {
        return;
    };
    cluster.ok("run p --image=nginx");
    cluster.ok("create deployment web --image=nginx");
    let missing = "the server could not find the requested resource";
    for (line, why) in [
        ("logs p", missing),
        ("exec p -- ls", missing),
        ("cp p:/x x", missing),
        ("top pods", "Metrics API not available"),
        ("port-forward p 8080:80", "pod is not running"),
        // No controller creates the ReplicaSets of the history.
        ("rollout undo deploy web", "no rollout history found"),
        (
            "rollout status deploy web --timeout=200ms",
            "timed out waiting for the condition",
        ),
    ] {
        let said = cluster.refused(line);
        assert!(said.contains(why), "{line}: {said}");
    }
}
