mod volumes;

use std::{fs, path::Path, time::Duration};

use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{Event, PersistentVolume, PersistentVolumeClaim, Pod},
    storage::v1::StorageClass,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::stage::{Kubelet, TestCluster, fields};

const SETTLE_TIME: Duration = Duration::from_secs(2);

struct Fixture {
    cluster: TestCluster,
    folder: TempDir,
}

impl Fixture {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        let cluster = TestCluster::start(|context| {
            Ok(vec![
                super::component(context, &path)?,
                super::volume_component(context, &path)?,
                crate::stateful_set::component(context)?,
            ])
        });
        let cluster = cluster.await;
        cluster.advance(SETTLE_TIME).await;
        Self { cluster, folder }
    }

    fn volumes(&self) -> Api<PersistentVolume> {
        Api::all(self.cluster.client.clone())
    }

    fn classes(&self) -> Api<StorageClass> {
        Api::all(self.cluster.client.clone())
    }

    /// Creates a claim of 1Gi with the fields of `more` in its spec, and waits until it is bound.
    async fn claim(&self, name: &str, more: Value) -> PersistentVolumeClaim {
        let mut spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
        spec.as_object_mut().unwrap().extend(fields(more));
        let claim = json!({"metadata": {"name": name}, "spec": spec});
        self.cluster.create::<PersistentVolumeClaim>(claim).await;
        self.cluster.advance(SETTLE_TIME).await;
        self.cluster.get(name).await
    }

    async fn volume(&self, name: &str, more: Value) {
        let mut spec = json!({
            "capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": format!("/srv/{name}")},
        });
        spec.as_object_mut().unwrap().extend(fields(more));
        let volume = json!({"metadata": {"name": name}, "spec": spec});
        self.cluster
            .create_cluster_scoped::<PersistentVolume>(volume)
            .await;
        self.cluster.advance(SETTLE_TIME).await;
    }

    async fn patch(&self, volume: &str, patch: Value) {
        let (volumes, parameters) = (self.volumes(), PatchParams::default());
        let patch = Patch::Merge(patch);
        let patched = volumes.patch(volume, &parameters, &patch).await;
        patched.unwrap();
    }

    /// Phase and claim of a volume; none if it is gone.
    async fn state(&self, volume: &str) -> Option<(String, Option<String>)> {
        let volume = self.volumes().get_opt(volume).await.unwrap()?;
        let claim = volume.spec.and_then(|spec| spec.claim_ref?.name);
        Some((volume.status?.phase?, claim))
    }

    /// The Events of a claim: reasons and messages.
    async fn events(&self, claim: &str) -> Vec<(String, String)> {
        let events: Vec<Event> = self.cluster.list().await;
        let of = events
            .into_iter()
            .filter(|event| event.involved_object.name.as_deref() == Some(claim));
        let pairs = of.map(|event| (event.reason.unwrap(), event.message.unwrap()));
        pairs.collect()
    }
}

fn phase(claim: &PersistentVolumeClaim) -> &str {
    claim.status.as_ref().unwrap().phase.as_deref().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_bound_to_a_folder_of_the_default_class() {
    let fixture = Fixture::open().await;
    let class = fixture.classes().get("standard").await.unwrap();
    let mark = "storageclass.kubernetes.io/is-default-class";
    assert_eq!(class.annotations()[mark], "true");
    let claim = fixture.claim("data", json!({})).await;
    let name = format!("pvc-{}", claim.uid().unwrap());
    let spec = claim.spec.clone().unwrap();
    assert_eq!(spec.storage_class_name.as_deref(), Some("standard"));
    assert_eq!(spec.volume_name.as_ref(), Some(&name));
    let status = serde_json::to_value(&claim.status).unwrap();
    let bound =
        json!({"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}});
    assert_eq!(status, bound);
    let annotations = claim.annotations();
    let expected = json!({
        "pv.kubernetes.io/bind-completed": "yes",
        "pv.kubernetes.io/bound-by-controller": "yes",
        "volume.beta.kubernetes.io/storage-provisioner": "neaptide.dev/folder",
        "volume.kubernetes.io/storage-provisioner": "neaptide.dev/folder",
    });
    assert_eq!(json!(annotations), expected);
    let volume = fixture.volumes().get(&name).await.unwrap();
    let path = fixture.folder.path().join(&name);
    let spec = serde_json::to_value(volume.spec).unwrap();
    assert_eq!(
        spec["hostPath"],
        json!({"path": path, "type": "DirectoryOrCreate"})
    );
    assert_eq!(spec["persistentVolumeReclaimPolicy"], "Delete");
    assert_eq!(spec["claimRef"]["uid"], json!(claim.uid()));
    assert_eq!(spec["claimRef"]["kind"], "PersistentVolumeClaim");
    assert_eq!(volume.status.unwrap().phase.as_deref(), Some("Bound"));
    let events = fixture.events("data").await;
    assert_eq!(events[0].0, "ProvisioningSucceeded");
}

#[tokio::test(start_paused = true)]
async fn a_volume_is_deleted_or_retained_by_its_reclaim_policy() {
    let fixture = Fixture::open().await;
    for (claim, policy) in [("gone", "Delete"), ("kept", "Retain")] {
        let claim = fixture.claim(claim, json!({})).await;
        let volume = claim.spec.as_ref().unwrap().volume_name.clone().unwrap();
        let patch = json!({"spec": {"persistentVolumeReclaimPolicy": policy}});
        fixture.patch(&volume, patch).await;
        let folder = fixture.folder.path().join(&volume);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("file"), "data").unwrap();
        fixture
            .cluster
            .delete::<PersistentVolumeClaim>(&claim.name_any())
            .await;
        fixture.cluster.advance(SETTLE_TIME).await;
        let left = fixture.state(&volume).await;
        let retained = policy == "Retain";
        assert_eq!(folder.join("file").exists(), retained, "{policy}");
        let expected = ("Released".to_owned(), Some("kept".to_owned()));
        assert_eq!(left, retained.then_some(expected), "{policy}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_a_pod_mounts_keeps_its_volume_until_the_pod_is_gone() {
    let fixture = Fixture::open().await;
    let claim = fixture.claim("data", json!({})).await;
    let volume = claim.spec.unwrap().volume_name.unwrap();
    let pod = json!({"metadata": {"name": "p"}, "spec": {
        "nodeName": "here", "containers": [{"name": "main", "image": "i"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
    }});
    fixture.cluster.create::<Pod>(pod).await;
    fixture
        .cluster
        .delete::<PersistentVolumeClaim>("data")
        .await;
    fixture.cluster.advance(SETTLE_TIME).await;
    let bound = ("Bound".to_owned(), Some("data".to_owned()));
    assert_eq!(fixture.state(&volume).await, Some(bound));
    let now = DeleteParams::default().grace_period(0);
    let pods: Api<Pod> = fixture.cluster.api();
    pods.delete("p", &now).await.unwrap();
    fixture.cluster.advance(SETTLE_TIME).await;
    assert_eq!(fixture.state(&volume).await, None);
}

#[tokio::test(start_paused = true)]
#[expect(clippy::too_many_lines, reason = "one claim through all of its states")]
async fn a_claim_that_cannot_be_bound_reports_why_and_is_bound_later() {
    let fixture = Fixture::open().await;
    let other = json!({"metadata": {"name": "far"}, "provisioner": "example.com/far"});
    fixture
        .cluster
        .create_cluster_scoped::<StorageClass>(other)
        .await;
    for (name, spec, reason, words) in [
        (
            "gone",
            json!({"storageClassName": "missing"}),
            "ProvisioningFailed",
            "there is no StorageClass \"missing\"",
        ),
        (
            "none",
            json!({"storageClassName": ""}),
            "FailedBinding",
            "no PersistentVolume matches this claim",
        ),
        (
            "far",
            json!({"storageClassName": "far"}),
            "ExternalProvisioning",
            "example.com/far",
        ),
        (
            "block",
            json!({"volumeMode": "Block"}),
            "ProvisioningFailed",
            "volumeMode must be Filesystem",
        ),
        (
            "picky",
            json!({"selector": {"matchLabels": {"a": "b"}}}),
            "ProvisioningFailed",
            "selector",
        ),
        (
            "named",
            json!({"volumeName": "v9"}),
            "FailedBinding",
            "there is no PersistentVolume \"v9\"",
        ),
    ] {
        let claim = fixture.claim(name, spec).await;
        assert_eq!(phase(&claim), "Pending", "{name}");
        let events = fixture.events(name).await;
        assert_eq!(events.len(), 1, "{events:?}");
        assert!(
            events[0].0 == reason && events[0].1.contains(words),
            "{events:?}"
        );
    }
    fixture
        .volume("v1", json!({"storageClassName": "far"}))
        .await;
    fixture
        .volume("v9", json!({"storageClassName": "standard"}))
        .await;
    for (claim, volume) in [("far", "v1"), ("named", "v9")] {
        let bound: PersistentVolumeClaim = fixture.cluster.get(claim).await;
        assert_eq!(phase(&bound), "Bound", "{claim}");
        let state = ("Bound".to_owned(), Some(claim.to_owned()));
        assert_eq!(fixture.state(volume).await, Some(state));
    }
    // The same Event is not recorded repeatedly.
    fixture.cluster.advance(Duration::from_mins(50)).await;
    assert_eq!(fixture.events("gone").await.len(), 1);
    let events: Vec<Event> = fixture.cluster.list().await;
    assert!(events.iter().all(|event| event.count == Some(1)));
}

#[tokio::test(start_paused = true)]
async fn a_class_may_wait_for_the_first_consumer() {
    let fixture = Fixture::open().await;
    let late = json!({"metadata": {"name": "late"}, "provisioner": "neaptide.dev/folder", "volumeBindingMode": "WaitForFirstConsumer"});
    fixture
        .cluster
        .create_cluster_scoped::<StorageClass>(late)
        .await;
    let claim = fixture
        .claim("data", json!({"storageClassName": "late"}))
        .await;
    assert_eq!(phase(&claim), "Pending");
    assert_eq!(fixture.events("data").await[0].0, "WaitForFirstConsumer");
    let pod = json!({"metadata": {"name": "p"}, "spec": {
        "containers": [{"name": "main", "image": "i"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
    }});
    fixture.cluster.create::<Pod>(pod).await;
    fixture.cluster.advance(SETTLE_TIME).await;
    let claim: PersistentVolumeClaim = fixture.cluster.get("data").await;
    assert_eq!(phase(&claim), "Bound");
}

#[tokio::test(start_paused = true)]
async fn a_claim_without_a_class_gets_a_default_one_that_is_created_later() {
    let fixture = Fixture::open().await;
    fixture
        .classes()
        .delete("standard", &DeleteParams::default())
        .await
        .unwrap();
    fixture.cluster.advance(SETTLE_TIME).await;
    let claim = fixture.claim("data", json!({})).await;
    assert_eq!(phase(&claim), "Pending");
    let class = json!({
        "metadata": {"name": "mine", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "neaptide.dev/folder",
    });
    fixture
        .cluster
        .create_cluster_scoped::<StorageClass>(class)
        .await;
    fixture.cluster.advance(SETTLE_TIME).await;
    let claim: PersistentVolumeClaim = fixture.cluster.get("data").await;
    assert_eq!(
        claim.spec.as_ref().unwrap().storage_class_name.as_deref(),
        Some("mine")
    );
    assert_eq!(phase(&claim), "Bound");
}

#[tokio::test(start_paused = true)]
async fn a_bound_claim_can_be_expanded_and_lost() {
    let fixture = Fixture::open().await;
    let claim = fixture.claim("data", json!({})).await;
    let more = json!({"spec": {"resources": {"requests": {"storage": "3Gi"}}}});
    fixture
        .cluster
        .patch::<PersistentVolumeClaim>("data", more)
        .await;
    fixture.cluster.advance(SETTLE_TIME).await;
    let grown: PersistentVolumeClaim = fixture.cluster.get("data").await;
    assert_eq!(
        json!(grown.status.unwrap().capacity),
        json!({"storage": "3Gi"})
    );
    let volume = claim.spec.unwrap().volume_name.unwrap();
    let freed = json!({"metadata": {"finalizers": null}});
    fixture.patch(&volume, freed).await;
    fixture
        .volumes()
        .delete(&volume, &DeleteParams::default())
        .await
        .unwrap();
    fixture.cluster.advance(SETTLE_TIME).await;
    let lost: PersistentVolumeClaim = fixture.cluster.get("data").await;
    assert_eq!(phase(&lost), "Lost");
    let events = fixture.events("data").await;
    assert!(
        events.iter().any(|(reason, _)| reason == "ClaimLost"),
        "{events:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn no_default_class_is_created_beside_a_users_class() {
    let folder = Path::new("/nowhere");
    let cluster = TestCluster::start(|_| Ok(Vec::new())).await;
    let class = json!({"metadata": {"name": "mine"}, "provisioner": "example.com/mine"});
    cluster.create_cluster_scoped::<StorageClass>(class).await;
    let cluster = cluster.with_component(|context| super::component(context, folder));
    cluster.advance(SETTLE_TIME).await;
    let classes: Api<StorageClass> = Api::all(cluster.client.clone());
    let all = classes.list(&ListParams::default()).await.unwrap();
    let names: Vec<_> = all.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["mine"]);
}

#[tokio::test(start_paused = true)]
async fn a_stateful_set_has_a_volume_for_each_of_its_pods() {
    let mut fixture = Fixture::open().await;
    fixture.cluster = fixture.cluster.with_kubelet(Kubelet::default());
    let set = json!({"metadata": {"name": "web"}, "spec": {
        "replicas": 2, "serviceName": "web", "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "app"}]}},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        }}],
    }});
    fixture.cluster.create::<StatefulSet>(set).await;
    fixture.cluster.advance(Duration::from_secs(30)).await;
    let claims: Vec<PersistentVolumeClaim> = fixture.cluster.list().await;
    let states: Vec<_> = claims
        .iter()
        .map(|claim| (claim.name_any(), phase(claim)))
        .collect();
    assert_eq!(
        states,
        [
            ("data-web-0".to_owned(), "Bound"),
            ("data-web-1".to_owned(), "Bound")
        ]
    );
    let set: StatefulSet = fixture.cluster.get("web").await;
    assert_eq!(set.status.unwrap().ready_replicas, Some(2));
}
