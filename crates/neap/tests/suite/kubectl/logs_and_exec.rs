//! `logs`, `exec` and `top`.

use super::{
    kubectl_cluster::{KubectlCluster, assert_table},
    workloads::until,
};

/// A pod of two containers, one that restarts, and one that ends.
const PODS: &str = "
apiVersion: v1
kind: Pod
metadata: {name: two}
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - name: one
      image: busybox
      command: [sh, -c, 'for i in 1 2 3; do echo one $i; done; exec sleep 1000']
    - {name: other, image: busybox, command: [sh, -c, 'echo other; exec sleep 1000']}
---
apiVersion: v1
kind: Pod
metadata: {name: again}
spec:
  terminationGracePeriodSeconds: 1
  volumes: [{name: kept, emptyDir: {}}]
  containers:
    - name: main
      image: busybox
      volumeMounts: [{name: kept, mountPath: /kept}]
      command:
        - sh
        - -c
        - |
          if test -f /kept/mark; then echo second; exec sleep 1000; fi
          touch /kept/mark; echo first; exit 3
---
apiVersion: v1
kind: Pod
metadata: {name: counts}
spec:
  restartPolicy: Never
  containers:
    - {name: main, image: busybox, command: [sh, -c, 'for i in 1 2 3; do echo $i; sleep 0.3; done']}
";

fn with_pods(test: &str) -> Option<KubectlCluster> {
    let cluster = KubectlCluster::up(test, &[])?;
    cluster.file("pods.yaml", PODS);
    cluster.ok("apply -f pods.yaml");
    Some(cluster)
}

#[test]
fn logs_are_followed_limited_and_selected_by_container() {
    let Some(cluster) = with_pods("logs_are_followed_limited_and_selected_by_container") else {
        return;
    };
    // `logs -f` ends with the container.
    until("it runs", || cluster.run("logs counts").code == Some(0));
    let counts = cluster.follow("logs -f counts");
    assert_eq!(
        [counts.line(), counts.line(), counts.line()],
        ["1", "2", "3"]
    );
    assert_eq!(counts.end(), Some(0));

    cluster.ok("wait pod/two --for=condition=Ready --timeout=60s");
    cluster.prints("logs two -c one", &["one 1\none 2\none 3\n"]);
    assert_eq!(cluster.ok("logs two -c one --tail=2"), "one 2\none 3\n");
    cluster.prints("logs two -c other", &["other\n"]);
    let all = cluster.ok("logs two --all-containers --prefix");
    assert!(all.contains("[pod/two/one] one 3\n"), "{all}");
    assert!(all.contains("[pod/two/other] other\n"), "{all}");
    let timed = cluster.ok("logs two -c other --timestamps");
    let (time, words) = timed.split_once(' ').unwrap();
    assert!(time.ends_with('Z') && words == "other\n", "{timed}");
    let none = cluster.refused("logs two -c third");
    assert!(
        none.contains("container third is not valid for pod two"),
        "{none}"
    );

    cluster.prints("logs again", &["second\n"]);
    assert_eq!(cluster.ok("logs again --previous"), "first\n");
    let none = cluster.refused("logs two -c one --previous");
    assert!(
        none.contains("previous terminated container \"one\""),
        "{none}"
    );
}

#[test]
fn exec_runs_commands_in_a_container() {
    let Some(cluster) = with_pods("exec_runs_commands_in_a_container") else {
        return;
    };
    cluster.ok("wait pod/two --for=condition=Ready --timeout=60s");
    let said = cluster.run("exec two -c one -- sh -c 'echo out; echo err >&2; exit 7'");
    assert_eq!((said.code, &*said.stdout), (Some(7), "out\n"));
    assert!(said.stderr.starts_with("err\n"), "{said:?}");
    assert!(said.stderr.contains("exit code 7"), "{said:?}");
    let piped = cluster.run_with_input(
        "exec -i two -c other -- sh -c 'wc -c; hostname'",
        "low tide",
    );
    assert_eq!((piped.code, &*piped.stdout), (Some(0), "8\ntwo\n"));
    let none = cluster.run("exec two -c other -- no-such-program");
    assert_ne!(none.code, Some(0));
    assert!(none.stderr.contains("no-such-program"), "{none:?}");
    let over = "wait pod/counts --for=jsonpath='{.status.phase}'=Succeeded --timeout=60s";
    cluster.ok(over);
    let over = cluster.refused("exec counts -- true");
    assert!(over.contains("completed pod"), "{over}");
}

#[test]
fn top_shows_usage_of_pods_and_node() {
    let Some(cluster) = with_pods("top_shows_usage_of_pods_and_node") else {
        return;
    };
    cluster.ok("wait pod/two --for=condition=Ready --timeout=60s");
    cluster.prints("top pods", &["two "]);
    let containers = cluster.ok("top pod two --containers");
    let lines = [
        "POD NAME CPU(cores) MEMORY(bytes)",
        "two one * *",
        "two other * *",
    ];
    assert_table(&containers, &lines);
    let node = cluster.ok("top nodes");
    let lines = [
        "NAME CPU(cores) CPU(%) MEMORY(bytes) MEMORY(%)",
        "neap * * * *",
    ];
    assert_table(&node, &lines);
}

#[test]
fn attach_is_refused() {
    let Some(cluster) = with_pods("attach_is_refused") else {
        return;
    };
    cluster.ok("wait pod/two --for=condition=Ready --timeout=60s");
    let refused = cluster.refused("attach two -c one");
    assert!(
        refused.contains("could not find the requested resource"),
        "{refused}"
    );
}
