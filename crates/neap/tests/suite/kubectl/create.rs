//! `create`, `run`, `expose` and `autoscale`; kubectl sends the bodies as protobuf or JSON.

use serde_json::json;

use super::kubectl_cluster::{KubectlCluster, assert_table};

#[test]
fn objects_of_many_kinds_are_created() {
    let Some(cluster) = KubectlCluster::start("objects_of_many_kinds_are_created") else {
        return;
    };
    for (line, said) in [
        ("create ns shop", "namespace/shop created"),
        (
            "create cm conf --from-literal=a=1 -n shop",
            "configmap/conf created",
        ),
        (
            "create secret generic key --from-literal=p=q -n shop",
            "secret/key created",
        ),
        (
            "create deployment web --image=nginx --replicas=2 --port=80 -n shop",
            "deployment.apps/web created",
        ),
        (
            "create job once --image=busybox -n shop -- echo hi",
            "job.batch/once created",
        ),
        (
            "create cronjob tick --image=busybox --schedule='*/5 * * * *' -n shop -- date",
            "cronjob.batch/tick created",
        ),
        (
            "create job now --from=cronjob/tick -n shop",
            "job.batch/now created",
        ),
        (
            "create role reader --verb=get,list --resource=pods -n shop",
            "role.rbac.authorization.k8s.io/reader created",
        ),
        (
            "create rolebinding bot --role=reader --serviceaccount=shop:bot -n shop",
            "rolebinding.rbac.authorization.k8s.io/bot created",
        ),
        (
            "create clusterrole all --verb=get --resource=nodes",
            "clusterrole.rbac.authorization.k8s.io/all created",
        ),
        (
            "create clusterrolebinding jane --clusterrole=all --user=jane",
            "clusterrolebinding.rbac.authorization.k8s.io/jane created",
        ),
        (
            "create quota small --hard=services=9,pods=2 -n shop",
            "resourcequota/small created",
        ),
        (
            "create ingress in --rule=example.com/*=web:80 -n shop",
            "ingress.networking.k8s.io/in created",
        ),
        ("create sa bot -n shop", "serviceaccount/bot created"),
        (
            "create pdb web --selector=app=web --min-available=1 -n shop",
            "poddisruptionbudget.policy/web created",
        ),
        (
            "create priorityclass high --value=1000",
            "priorityclass.scheduling.k8s.io/high created",
        ),
        (
            "create service clusterip plain --tcp=80:8080 -n shop",
            "service/plain created",
        ),
        (
            "run one --image=nginx --port=80 --env=A=1 -n shop",
            "pod/one created",
        ),
        (
            "expose deployment web --port=80 -n shop",
            "service/web exposed",
        ),
        (
            "expose pod one --port=80 --name=one -n shop",
            "service/one exposed",
        ),
    ] {
        assert_eq!(cluster.ok(line).trim_end(), said, "{line}");
    }
    let all = "get deploy,job,cj,svc,pdb,ing,cm,secret -n shop";
    assert_table(&cluster.ok(all), TABLES);
    let job = cluster.json("get job now -n shop");
    assert_eq!(job["metadata"]["ownerReferences"][0]["name"], "tick");
    assert_eq!(
        job["metadata"]["annotations"],
        json!({"cronjob.kubernetes.io/instantiate": "manual"})
    );
    let secret = cluster.json("get secret key -n shop");
    assert_eq!(secret["data"], json!({"p": "cQ=="}));
}

const TABLES: &[&str] = &[
    "NAME READY UP-TO-DATE AVAILABLE AGE",
    "deployment.apps/web 0/2 0 0 *",
    "NAME STATUS COMPLETIONS DURATION AGE",
    "job.batch/now Running 0/1 *",
    "job.batch/once Running 0/1 *",
    "NAME SCHEDULE TIMEZONE SUSPEND ACTIVE LAST SCHEDULE AGE",
    "cronjob.batch/tick */5 * * * * <none> False 0 <none> *",
    "NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE",
    "service/one ClusterIP * <none> 80/TCP *",
    "service/plain ClusterIP * <none> 80/TCP *",
    "service/web ClusterIP * <none> 80/TCP *",
    "NAME MIN AVAILABLE MAX UNAVAILABLE ALLOWED DISRUPTIONS AGE",
    "poddisruptionbudget.policy/web 1 N/A 0 *",
    "NAME CLASS HOSTS ADDRESS PORTS AGE",
    "ingress.networking.k8s.io/in <none> example.com 80 *",
    "NAME DATA AGE",
    "configmap/conf 1 *",
    "configmap/kube-root-ca.crt 1 *",
    "NAME TYPE DATA AGE",
    "secret/key Opaque 1 *",
];

#[test]
fn deployment_is_autoscaled() {
    let Some(cluster) = KubectlCluster::start("deployment_is_autoscaled") else {
        return;
    };
    cluster.ok("create deployment web --image=nginx");
    let line = "autoscale deployment web --max=5 --cpu-percent=80";
    let client = cluster.json("version --client")["clientVersion"]["gitVersion"].clone();
    let minor = client.as_str().unwrap().split('.').nth(1).unwrap();
    // Up to 1.32, kubectl uses autoscaling/v1, and the server has only v2.
    if minor.parse::<u32>().unwrap() < 33 {
        let refused = cluster.refused(line);
        assert!(
            refused.starts_with("Error from server (NotFound)"),
            "{refused}"
        );
        return;
    }
    assert_eq!(
        cluster.ok(line),
        "horizontalpodautoscaler.autoscaling/web autoscaled\n"
    );
    assert_table(
        &cluster.ok("get hpa"),
        &[
            "NAME REFERENCE TARGETS MINPODS MAXPODS REPLICAS AGE",
            "web Deployment/web cpu: <unknown>/80% 1 5 0 *",
        ],
    );
}

#[test]
fn refused_creations_are_explained() {
    let Some(cluster) = KubectlCluster::start("refused_creations_are_explained") else {
        return;
    };
    let there = cluster.ok("create cm x");
    assert_eq!(there.trim_end(), "configmap/x created");
    assert_eq!(
        cluster.refused("create cm x").trim_end(),
        "error: failed to create configmap: configmaps \"x\" already exists"
    );
    assert_eq!(
        cluster.refused("create cm y -n nowhere").trim_end(),
        "error: failed to create configmap: namespaces \"nowhere\" not found"
    );
    cluster.file(
        "pod.yaml",
        "{apiVersion: v1, kind: Pod, metadata: {name: X_y}, spec: {}}",
    );
    let wrong = cluster.refused("create -f pod.yaml");
    assert!(wrong.starts_with("The Pod \"X_y\" is invalid:"), "{wrong}");
    assert!(wrong.contains("* metadata.name: Invalid value: \"X_y\""));
    assert!(wrong.contains("* spec.containers: Required value"));

    let dry = cluster.ok("create ns maybe --dry-run=server");
    assert_eq!(dry.trim_end(), "namespace/maybe created (server dry run)");
    assert_eq!(
        cluster.refused("get ns maybe").trim_end(),
        "Error from server (NotFound): namespaces \"maybe\" not found"
    );
}
