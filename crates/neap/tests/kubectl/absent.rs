//! What this server does not do, and how kubectl puts it. Nothing hangs, nothing pretends.

use crate::cluster::Cluster;

#[test]
fn what_is_not_served_is_refused_plainly() {
    let Some(cluster) = Cluster::start("what_is_not_served_is_refused_plainly") else {
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
        // Nothing makes the sets that a history is made of.
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
