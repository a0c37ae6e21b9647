//! Tokens of service accounts, and `auth whoami`.

use serde_json::{Value, json};

use super::kubectl_cluster::KubectlCluster;

/// The user of a token, or the error output.
fn whoami(cluster: &KubectlCluster, token: &str) -> Result<Value, String> {
    let said = cluster.run(&format!("auth whoami -o json --token {}", token.trim()));
    match said.code {
        Some(0) => {
            let review: Value = serde_json::from_str(&said.stdout).unwrap();
            Ok(review["status"]["userInfo"].clone())
        }
        _ => Err(said.stderr),
    }
}

#[track_caller]
fn assert_unauthorized(cluster: &KubectlCluster, token: &str) {
    let why = whoami(cluster, token).unwrap_err();
    assert!(why.contains("Unauthorized"), "{why}");
}

#[test]
fn a_created_token_authenticates_its_service_account() {
    let Some(cluster) = KubectlCluster::start("a_created_token_authenticates_its_service_account")
    else {
        return;
    };
    cluster.ok("create serviceaccount robot");
    let token = cluster.ok("create token robot --duration 10m");
    let who = whoami(&cluster, &token).unwrap();
    assert_eq!(who["username"], "system:serviceaccount:default:robot");
    let groups = [
        "system:serviceaccounts",
        "system:serviceaccounts:default",
        "system:authenticated",
    ];
    assert_eq!(who["groups"], json!(groups));
    let table = cluster.ok(&format!("auth whoami --token {}", token.trim()));
    assert!(
        table.contains("system:serviceaccount:default:robot"),
        "{table}"
    );
    let asked = cluster.json("create token robot --duration 20m");
    assert_eq!(asked["spec"]["expirationSeconds"], 1200);
    cluster.ok("delete serviceaccount robot");
    assert_unauthorized(&cluster, &token);
    let why = cluster.refused("create token robot");
    assert!(why.contains("serviceaccounts \"robot\" not found"), "{why}");
    let why = cluster.refused("create token default --duration 1m");
    let rule = "may not specify a duration less than 10 minutes";
    assert!(why.contains(rule), "{why}");
}

#[test]
fn tokens_of_other_audiences_or_deleted_objects_are_rejected() {
    let Some(cluster) =
        KubectlCluster::start("tokens_of_other_audiences_or_deleted_objects_are_rejected")
    else {
        return;
    };
    let elsewhere = cluster.ok("create token default --audience vault");
    assert_unauthorized(&cluster, &elsewhere);
    assert_unauthorized(&cluster, "nonsense");

    cluster.ok("create secret generic s");
    cluster.ok("run p --image i");
    for (kind, name) in [("Secret", "s"), ("Pod", "p")] {
        let bound =
            format!("create token default --bound-object-kind {kind} --bound-object-name {name}");
        let token = cluster.ok(&bound);
        let who = whoami(&cluster, &token).unwrap();
        let pod = &who["extra"]["authentication.kubernetes.io/pod-name"];
        assert_eq!(*pod == json!(["p"]), kind == "Pod", "{who}");
        cluster.ok(&format!("delete {kind} {name} --force --grace-period 0"));
        assert_unauthorized(&cluster, &token);
        let why = cluster.refused(&bound);
        assert!(why.contains("not found"), "{why}");
    }
    let uid =
        "create token default --bound-object-kind Pod --bound-object-name q --bound-object-uid x";
    cluster.ok("run q --image i");
    let why = cluster.refused(uid);
    assert!(why.contains("does not match the UID in record"), "{why}");
}

#[test]
fn the_admin_authenticates_by_token_and_by_certificate() {
    let Some(cluster) =
        KubectlCluster::start("the_admin_authenticates_by_token_and_by_certificate")
    else {
        return;
    };
    for user in ["neap", "neap-certificate"] {
        let review = cluster.json(&format!("auth whoami --user {user}"));
        let who = &review["status"]["userInfo"];
        assert_eq!(who["username"], "admin", "{user}");
        assert_eq!(
            who["groups"],
            json!(["system:masters", "system:authenticated"])
        );
        let credential = who["extra"]["authentication.kubernetes.io/credential-id"][0].as_str();
        let print = credential.is_some_and(|id| id.starts_with("X509SHA256="));
        assert_eq!(print, user == "neap-certificate", "{who}");
    }
}
