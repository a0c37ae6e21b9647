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

use crate::stage::{Kubelet, Stage, fields};

const SOON: Duration = Duration::from_secs(2);

struct Play {
    stage: Stage,
    folder: TempDir,
}

impl Play {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        let stage = Stage::open(|site| {
            Ok(vec![
                super::service(site, &path)?,
                super::volumes(site, &path)?,
                crate::stateful_set::service(site)?,
            ])
        });
        let stage = stage.await;
        stage.pass(SOON).await;
        Self { stage, folder }
    }

    fn volumes(&self) -> Api<PersistentVolume> {
        Api::all(self.stage.client.clone())
    }

    fn classes(&self) -> Api<StorageClass> {
        Api::all(self.stage.client.clone())
    }

    /// Claims 1Gi, with what `more` says in its spec, and lets it be bound.
    async fn claim(&self, name: &str, more: Value) -> PersistentVolumeClaim {
        let mut spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
        spec.as_object_mut().unwrap().extend(fields(more));
        let claim = json!({"metadata": {"name": name}, "spec": spec});
        self.stage.create::<PersistentVolumeClaim>(claim).await;
        self.stage.pass(SOON).await;
        self.stage.get(name).await
    }

    async fn volume(&self, name: &str, more: Value) {
        let mut spec = json!({
            "capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": format!("/srv/{name}")},
        });
        spec.as_object_mut().unwrap().extend(fields(more));
        let volume = json!({"metadata": {"name": name}, "spec": spec});
        self.stage.create_for_all::<PersistentVolume>(volume).await;
        self.stage.pass(SOON).await;
    }

    async fn patch(&self, volume: &str, patch: Value) {
        let (volumes, parameters) = (self.volumes(), PatchParams::default());
        let patch = Patch::Merge(patch);
        let patched = volumes.patch(volume, &parameters, &patch).await;
        patched.unwrap();
    }

    /// Phase and claim of a volume; nothing if it is gone.
    async fn state(&self, volume: &str) -> Option<(String, Option<String>)> {
        let volume = self.volumes().get_opt(volume).await.unwrap()?;
        let claim = volume.spec.and_then(|spec| spec.claim_ref?.name);
        Some((volume.status?.phase?, claim))
    }

    /// What was said of a claim: reasons and messages.
    async fn events(&self, claim: &str) -> Vec<(String, String)> {
        let events: Vec<Event> = self.stage.list().await;
        let of = events
            .into_iter()
            .filter(|event| event.involved_object.name.as_deref() == Some(claim));
        let said = of.map(|event| (event.reason.unwrap(), event.message.unwrap()));
        said.collect()
    }
}

fn phase(claim: &PersistentVolumeClaim) -> &str {
    claim.status.as_ref().unwrap().phase.as_deref().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_given_a_folder_of_the_usual_class() {
    let play = Play::open().await;
    let class = play.classes().get("standard").await.unwrap();
    let mark = "storageclass.kubernetes.io/is-default-class";
    assert_eq!(class.annotations()[mark], "true");
    let claim = play.claim("data", json!({})).await;
    let name = format!("pvc-{}", claim.uid().unwrap());
    let spec = claim.spec.clone().unwrap();
    assert_eq!(spec.storage_class_name.as_deref(), Some("standard"));
    assert_eq!(spec.volume_name.as_ref(), Some(&name));
    let status = serde_json::to_value(&claim.status).unwrap();
    let bound =
        json!({"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}});
    assert_eq!(status, bound);
    let notes = claim.annotations();
    let expected = json!({
        "pv.kubernetes.io/bind-completed": "yes",
        "pv.kubernetes.io/bound-by-controller": "yes",
        "volume.beta.kubernetes.io/storage-provisioner": "neaptide.dev/folder",
        "volume.kubernetes.io/storage-provisioner": "neaptide.dev/folder",
    });
    assert_eq!(json!(notes), expected);
    let volume = play.volumes().get(&name).await.unwrap();
    let path = play.folder.path().join(&name);
    let spec = serde_json::to_value(volume.spec).unwrap();
    assert_eq!(
        spec["hostPath"],
        json!({"path": path, "type": "DirectoryOrCreate"})
    );
    assert_eq!(spec["persistentVolumeReclaimPolicy"], "Delete");
    assert_eq!(spec["claimRef"]["uid"], json!(claim.uid()));
    assert_eq!(spec["claimRef"]["kind"], "PersistentVolumeClaim");
    assert_eq!(volume.status.unwrap().phase.as_deref(), Some("Bound"));
    let said = play.events("data").await;
    assert_eq!(said[0].0, "ProvisioningSucceeded");
}

#[tokio::test(start_paused = true)]
async fn what_is_to_be_deleted_goes_with_its_claim_and_what_is_to_be_retained_stays() {
    let play = Play::open().await;
    for (claim, policy) in [("gone", "Delete"), ("kept", "Retain")] {
        let claim = play.claim(claim, json!({})).await;
        let volume = claim.spec.as_ref().unwrap().volume_name.clone().unwrap();
        let patch = json!({"spec": {"persistentVolumeReclaimPolicy": policy}});
        play.patch(&volume, patch).await;
        let folder = play.folder.path().join(&volume);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("file"), "data").unwrap();
        play.stage
            .delete::<PersistentVolumeClaim>(&claim.name_any())
            .await;
        play.stage.pass(SOON).await;
        let left = play.state(&volume).await;
        let retained = policy == "Retain";
        assert_eq!(folder.join("file").exists(), retained, "{policy}");
        let expected = ("Released".to_owned(), Some("kept".to_owned()));
        assert_eq!(left, retained.then_some(expected), "{policy}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_a_pod_mounts_keeps_its_volume_until_the_pod_is_gone() {
    let play = Play::open().await;
    let claim = play.claim("data", json!({})).await;
    let volume = claim.spec.unwrap().volume_name.unwrap();
    let pod = json!({"metadata": {"name": "p"}, "spec": {
        "nodeName": "here", "containers": [{"name": "main", "image": "i"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
    }});
    play.stage.create::<Pod>(pod).await;
    play.stage.delete::<PersistentVolumeClaim>("data").await;
    play.stage.pass(SOON).await;
    let bound = ("Bound".to_owned(), Some("data".to_owned()));
    assert_eq!(play.state(&volume).await, Some(bound));
    let now = DeleteParams::default().grace_period(0);
    let pods: Api<Pod> = play.stage.api();
    pods.delete("p", &now).await.unwrap();
    play.stage.pass(SOON).await;
    assert_eq!(play.state(&volume).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_cannot_be_bound_says_why_and_is_bound_when_it_can() {
    let play = Play::open().await;
    let other = json!({"metadata": {"name": "far"}, "provisioner": "example.com/far"});
    play.stage.create_for_all::<StorageClass>(other).await;
    for (name, spec, reason, words) in [
        (
            "gone",
            json!({"storageClassName": "nobody"}),
            "ProvisioningFailed",
            "there is no StorageClass \"nobody\"",
        ),
        (
            "none",
            json!({"storageClassName": ""}),
            "FailedBinding",
            "no PersistentVolume fits this claim",
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
        let claim = play.claim(name, spec).await;
        assert_eq!(phase(&claim), "Pending", "{name}");
        let said = play.events(name).await;
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].0 == reason && said[0].1.contains(words), "{said:?}");
    }
    play.volume("v1", json!({"storageClassName": "far"})).await;
    play.volume("v9", json!({"storageClassName": "standard"}))
        .await;
    for (claim, volume) in [("far", "v1"), ("named", "v9")] {
        let bound: PersistentVolumeClaim = play.stage.get(claim).await;
        assert_eq!(phase(&bound), "Bound", "{claim}");
        let state = ("Bound".to_owned(), Some(claim.to_owned()));
        assert_eq!(play.state(volume).await, Some(state));
    }
    // Nobody says the same again and again.
    play.stage.pass(Duration::from_mins(50)).await;
    assert_eq!(play.events("gone").await.len(), 1);
    let events: Vec<Event> = play.stage.list().await;
    assert!(events.iter().all(|event| event.count == Some(1)));
}

#[tokio::test(start_paused = true)]
async fn a_class_may_wait_for_the_first_pod() {
    let play = Play::open().await;
    let late = json!({"metadata": {"name": "late"}, "provisioner": "neaptide.dev/folder", "volumeBindingMode": "WaitForFirstConsumer"});
    play.stage.create_for_all::<StorageClass>(late).await;
    let claim = play
        .claim("data", json!({"storageClassName": "late"}))
        .await;
    assert_eq!(phase(&claim), "Pending");
    assert_eq!(play.events("data").await[0].0, "WaitForFirstConsumer");
    let pod = json!({"metadata": {"name": "p"}, "spec": {
        "containers": [{"name": "main", "image": "i"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
    }});
    play.stage.create::<Pod>(pod).await;
    play.stage.pass(SOON).await;
    let claim: PersistentVolumeClaim = play.stage.get("data").await;
    assert_eq!(phase(&claim), "Bound");
}

#[tokio::test(start_paused = true)]
async fn a_claim_without_a_class_gets_the_default_one_also_later() {
    let play = Play::open().await;
    play.classes()
        .delete("standard", &DeleteParams::default())
        .await
        .unwrap();
    play.stage.pass(SOON).await;
    let claim = play.claim("data", json!({})).await;
    assert_eq!(phase(&claim), "Pending");
    let class = json!({
        "metadata": {"name": "mine", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "neaptide.dev/folder",
    });
    play.stage.create_for_all::<StorageClass>(class).await;
    play.stage.pass(SOON).await;
    let claim: PersistentVolumeClaim = play.stage.get("data").await;
    assert_eq!(
        claim.spec.as_ref().unwrap().storage_class_name.as_deref(),
        Some("mine")
    );
    assert_eq!(phase(&claim), "Bound");
}

#[tokio::test(start_paused = true)]
async fn a_bound_claim_may_grow_and_may_be_lost() {
    let play = Play::open().await;
    let claim = play.claim("data", json!({})).await;
    let more = json!({"spec": {"resources": {"requests": {"storage": "3Gi"}}}});
    play.stage
        .patch::<PersistentVolumeClaim>("data", more)
        .await;
    play.stage.pass(SOON).await;
    let grown: PersistentVolumeClaim = play.stage.get("data").await;
    assert_eq!(
        json!(grown.status.unwrap().capacity),
        json!({"storage": "3Gi"})
    );
    let volume = claim.spec.unwrap().volume_name.unwrap();
    let freed = json!({"metadata": {"finalizers": null}});
    play.patch(&volume, freed).await;
    play.volumes()
        .delete(&volume, &DeleteParams::default())
        .await
        .unwrap();
    play.stage.pass(SOON).await;
    let lost: PersistentVolumeClaim = play.stage.get("data").await;
    assert_eq!(phase(&lost), "Lost");
    let said = play.events("data").await;
    assert!(
        said.iter().any(|(reason, _)| reason == "ClaimLost"),
        "{said:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_class_that_people_made_is_not_added_to() {
    let folder = Path::new("/nowhere");
    let stage = Stage::open(|_| Ok(Vec::new())).await;
    let class = json!({"metadata": {"name": "mine"}, "provisioner": "example.com/mine"});
    stage.create_for_all::<StorageClass>(class).await;
    let stage = stage.and(|site| super::service(site, folder));
    stage.pass(SOON).await;
    let classes: Api<StorageClass> = Api::all(stage.client.clone());
    let all = classes.list(&ListParams::default()).await.unwrap();
    let names: Vec<_> = all.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["mine"]);
}

#[tokio::test(start_paused = true)]
async fn a_stateful_set_has_a_volume_for_each_of_its_pods() {
    let mut play = Play::open().await;
    play.stage = play.stage.with(Kubelet::default());
    let set = json!({"metadata": {"name": "web"}, "spec": {
        "replicas": 2, "serviceName": "web", "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "app"}]}},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        }}],
    }});
    play.stage.create::<StatefulSet>(set).await;
    play.stage.pass(Duration::from_secs(30)).await;
    let claims: Vec<PersistentVolumeClaim> = play.stage.list().await;
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
    let set: StatefulSet = play.stage.get("web").await;
    assert_eq!(set.status.unwrap().ready_replicas, Some(2));
}
