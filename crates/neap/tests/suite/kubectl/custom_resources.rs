//! CustomResourceDefinitions and custom resources.

use serde_json::json;

use super::{
    kubectl_cluster::{KubectlCluster, assert_lines, assert_table},
    manifests::{BOATS, TERN},
};

#[test]
fn definition_and_object_in_one_file_take_two_applies() {
    let Some(cluster) = KubectlCluster::start("definition_and_object_in_one_file_take_two_applies")
    else {
        return;
    };
    cluster.file("all.yaml", &format!("{BOATS}\n---\n{TERN}"));
    // kubectl resolves all kinds before it applies the first object.
    let first = cluster.run("apply -f all.yaml");
    assert_eq!(first.code, Some(1));
    assert_eq!(
        first.stdout,
        "customresourcedefinition.apiextensions.k8s.io/boats.harbour.example created\n"
    );
    assert!(
        first.stderr.contains("no matches for kind \"Boat\"")
            && first.stderr.contains("ensure CRDs are installed first"),
        "{}",
        first.stderr
    );
    // No wait is needed: an acknowledged definition is served.
    assert_eq!(
        cluster.ok("apply -f all.yaml"),
        "customresourcedefinition.apiextensions.k8s.io/boats.harbour.example unchanged\n\
         boat.harbour.example/tern created\n"
    );
    assert_eq!(
        cluster.ok("wait --for=condition=Established crd/boats.harbour.example"),
        "customresourcedefinition.apiextensions.k8s.io/boats.harbour.example condition met\n"
    );
}

fn harbour(test: &str) -> Option<KubectlCluster> {
    let cluster = KubectlCluster::start(test)?;
    cluster.file("boats.yaml", BOATS);
    cluster.file("tern.yaml", TERN);
    cluster.ok("create -f boats.yaml");
    assert_eq!(
        cluster.ok("apply -f tern.yaml"),
        "boat.harbour.example/tern created\n"
    );
    Some(cluster)
}

#[test]
fn custom_resources_are_read_and_changed_like_others() {
    let Some(cluster) = harbour("custom_resources_are_read_and_changed_like_others") else {
        return;
    };
    assert_table(&cluster.ok("get boats"), &["NAME BERTH AGE", "tern B7 *"]);
    let wide = cluster.ok("get bt -o wide");
    assert_table(&wide, &["NAME BERTH MASTS AGE", "tern B7 1 *"]);
    assert!(cluster.ok("get all").contains("boat.harbour.example/tern"));

    cluster.file("moved.yaml", &TERN.replace("crew: 2", "masts: 2"));
    assert_eq!(
        cluster.ok("apply -f tern.yaml"),
        "boat.harbour.example/tern unchanged\n"
    );
    assert_eq!(
        cluster.ok("apply -f moved.yaml"),
        "boat.harbour.example/tern configured\n"
    );
    let boat = cluster.json("get boat tern");
    assert_eq!(boat["spec"], json!({"berth": "B7", "masts": 2}));

    cluster.ok(r#"patch boat tern --type=merge -p '{"spec":{"masts":3}}'"#);
    cluster.ok(r#"patch boat tern --type=json -p '[{"op":"add","path":"/spec/cargo","value":[{"name":"tin","tons":2}]}]'"#);
    let refused = cluster.refused(r#"patch boat tern --type=merge -p '{"spec":{"masts":-1}}'"#);
    assert_eq!(
        refused.trim_end(),
        "The Boat \"tern\" is invalid: spec.masts: Invalid value: -1: spec.masts in body should be greater than or equal to 0"
    );
    let refused = cluster.refused(r#"patch boat tern -p '{"spec":{"masts":3}}'"#);
    assert!(
        refused.contains("application/strategic-merge-patch+json is not supported"),
        "{refused}"
    );

    let edited = cluster.edit("boat tern", "s/B7/C9/");
    assert_eq!(edited.stdout, "boat.harbour.example/tern edited\n");
    assert_eq!(cluster.json("get boat tern")["spec"]["berth"], "C9");
    let same = cluster.edit("boat tern", "s/B7/C9/");
    let said = same.stdout + &same.stderr;
    assert_eq!(said, "Edit cancelled, no changes made.\n");
}

#[test]
fn custom_resources_scale_and_meet_conditions() {
    let Some(cluster) = harbour("custom_resources_scale_and_meet_conditions") else {
        return;
    };
    let scaled = "boat.harbour.example/tern scaled\n";
    assert_eq!(cluster.ok("scale boat tern --replicas=5"), scaled);
    assert_eq!(
        cluster
            .refused("scale boat tern --replicas=6 --current-replicas=2")
            .trim_end(),
        "error: Expected replicas to be 2, was 5"
    );
    let line = "scale boat tern --replicas=6 --current-replicas=5";
    assert_eq!(cluster.ok(line), scaled);

    let ready = cluster.follow("wait boat tern --for=condition=Ready --timeout=60s");
    cluster.ok(r#"patch boat tern --subresource=status --type=merge -p '{"status":{"crew":6,"conditions":[{"type":"Ready","status":"True"}]},"spec":{"masts":9}}'"#);
    assert_eq!(ready.line(), "boat.harbour.example/tern condition met");
    assert_eq!(ready.end(), Some(0));
    let boat = cluster.json("get boat tern");
    assert_eq!(
        (&boat["spec"]["crew"], &boat["spec"]["masts"]),
        (&json!(6), &json!(1))
    );
    let described = cluster.ok("describe boat tern");
    assert_lines(
        &described,
        &[
            "Name: tern",
            "API Version: harbour.example/v1",
            "Crew: 6",
            "Type: Ready",
            "Events: <none>",
        ],
    );
    let late = cluster.refused("wait boat tern --for=condition=Sunk --timeout=200ms");
    assert_eq!(
        late.trim_end(),
        "error: timed out waiting for the condition on boats/tern"
    );
}

#[test]
fn explain_describes_built_in_and_custom_fields() {
    let Some(cluster) = harbour("explain_describes_built_in_and_custom_fields") else {
        return;
    };
    let boat = cluster.ok("explain boat");
    let lines = [
        "GROUP: harbour.example",
        "KIND: Boat",
        "VERSION: v1",
        "A boat that lies in the harbour.",
        "metadata <ObjectMeta>",
        "spec <Object>",
        "What is wanted of the boat.",
    ];
    assert_lines(&boat, &lines);
    let all = cluster.ok("explain boat --recursive");
    assert_lines(
        &all,
        &[
            "berth <string> -required-",
            "cargo <[]Object>",
            "tons <integer>",
        ],
    );
    let env = cluster.ok("explain deploy.spec.template.spec.containers.env");
    assert_lines(
        &env,
        &[
            "FIELD: env <[]EnvVar>",
            "name <string> -required-",
            "valueFrom <EnvVarSource>",
        ],
    );
    assert_lines(&cluster.ok("explain hpa"), &["VERSION: v2"]);
    assert!(
        cluster
            .refused("explain pod.spec.nothing")
            .contains("field \"nothing\" does not exist")
    );
}

#[test]
fn deleting_a_definition_deletes_its_objects() {
    let Some(cluster) = harbour("deleting_a_definition_deletes_its_objects") else {
        return;
    };
    let said = cluster.ok("delete crd boats.harbour.example");
    assert!(
        said.starts_with(
            "customresourcedefinition.apiextensions.k8s.io \"boats.harbour.example\" deleted"
        ),
        "{said}"
    );
    cluster.refused("get boats");
    cluster.ok("create -f boats.yaml");
    assert_eq!(cluster.run("get boats -o name").stdout, "");
}
