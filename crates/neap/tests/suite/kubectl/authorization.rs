//! `auth can-i`, `auth reconcile` and `--as`: the permissions of roles.

use super::kubectl_cluster::KubectlCluster;

#[test]
fn auth_can_i_reports_permissions() {
    let Some(cluster) = KubectlCluster::start("auth_can_i_reports_permissions") else {
        return;
    };
    cluster.ok("create ns shop");
    cluster.ok("create role reader --verb=get,list --resource=pods,deployments.apps/scale -n shop");
    cluster.ok("create rolebinding anns --role=reader --user=ann -n shop");
    cluster.ok("create clusterrolebinding viewers --clusterrole=view --group=viewers");
    for (line, allowed) in [
        ("auth can-i '*' '*'", true),
        ("auth can-i get pods -n shop --as ann", true),
        ("auth can-i get pods --as ann", false),
        (
            "auth can-i get deployments.apps --subresource=scale -n shop --as ann",
            true,
        ),
        ("auth can-i delete pods -n shop --as ann", false),
        (
            "auth can-i list deployments.apps -A --as eve --as-group viewers",
            true,
        ),
        (
            "auth can-i list secrets -A --as eve --as-group viewers",
            false,
        ),
        ("auth can-i get /api --as eve", true),
        ("auth can-i get /metrics --as eve", false),
    ] {
        let said = cluster.run(line);
        let (code, word) = if allowed { (0, "yes") } else { (1, "no") };
        assert_eq!(said.code, Some(code), "{line}: {said:?}");
        assert!(said.stdout.starts_with(word), "{line}: {said:?}");
    }
    let list = cluster.ok("auth can-i --list -n shop --as ann");
    let rows: Vec<String> = list
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    for row in [
        "selfsubjectreviews.authentication.k8s.io [] [] [create]",
        "selfsubjectrulesreviews.authorization.k8s.io [] [] [create]",
        "pods [] [] [get list]",
        "[/api/*] [] [get]",
    ] {
        assert!(rows.iter().any(|found| found == row), "{row}: {list}");
    }
}

#[test]
fn impersonated_users_have_only_their_own_permissions() {
    let Some(cluster) = KubectlCluster::start("impersonated_users_have_only_their_own_permissions")
    else {
        return;
    };
    cluster.ok("create cm conf");
    let said = cluster.refused("get cm --as ann");
    let why = "configmaps is forbidden: User \"ann\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"default\"";
    assert!(said.contains(why), "{said}");
    cluster.ok("create rolebinding anns --clusterrole=edit --user=ann");
    cluster.ok("get cm conf --as ann");
    cluster.ok("create cm another --as ann");
    cluster.ok("label cm another a=b --as ann --as-group shop --as-uid 7");
    let said = cluster
        .refused("create clusterrolebinding more --clusterrole=cluster-admin --user=ann --as ann");
    assert!(
        said.contains("User \"ann\" cannot create resource \"clusterrolebindings\""),
        "{said}"
    );
    cluster.ok("create rolebinding admins --clusterrole=admin --user=ann");
    let said =
        cluster.refused("create rolebinding more --clusterrole=cluster-admin --user=eve --as ann");
    let why = "user \"ann\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:";
    assert!(said.contains(why), "{said}");
    cluster.ok("create rolebinding viewers --clusterrole=view --user=eve --as ann");
    cluster.ok("get pods --as eve");
    let account = "--as system:serviceaccount:default:default";
    let said = cluster.refused(&format!("get pods {account}"));
    assert!(
        said.contains("User \"system:serviceaccount:default:default\" cannot list"),
        "{said}"
    );
    cluster.ok("create rolebinding accounts --clusterrole=view --serviceaccount=default:default");
    cluster.ok(&format!("get pods {account}"));
}

#[test]
fn auth_reconcile_adds_missing_rules() {
    let Some(cluster) = KubectlCluster::start("auth_reconcile_adds_missing_rules") else {
        return;
    };
    cluster.ok("create role reader --verb=get --resource=pods");
    cluster.file(
        "role.yaml",
        r"
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: default}
rules: [{apiGroups: [''], resources: [pods], verbs: [get, list]}]
",
    );
    let said = cluster.ok("auth reconcile -f role.yaml");
    assert!(
        said.contains("role.rbac.authorization.k8s.io/reader reconciled"),
        "{said}"
    );
    cluster.ok("create rolebinding anns --role=reader --user=ann");
    cluster.ok("get pods --as ann");
}
