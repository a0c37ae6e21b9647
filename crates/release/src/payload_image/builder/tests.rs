//! Payloads assembled from and pushed to a registry in memory.

use http::{Method, StatusCode};
use neap_emulators::{
    fault_book::CallMatcher,
    network::Network,
    registry::{Registry, Settings},
    system::Emulator,
};
use neap_kit::{
    client::{Client, Fault, Refusal},
    clock::Clock,
    why,
};

use super::*;
use crate::{
    oci::{
        client::Options, content_cache::ContentCache, credentials::Credentials, digest::sha256,
        image_folder::ImageFolder,
    },
    payload_image::{
        difference::difference,
        extract, input,
        labels::OPERATOR,
        mirror::{self, MirrorOptions, Target},
        reader,
        sample::{self, SampleImage},
        verify,
    },
};

const HOST: &str = "reg.example.com";

pub(in crate::payload_image) struct Lab {
    registry: Emulator<Registry>,
    network: Network,
    pub(in crate::payload_image) client: RegistryClient,
    clock: Clock,
}

impl Lab {
    pub(in crate::payload_image) async fn open() -> Self {
        let clock = Clock::starting_at("2026-01-05T00:00:00Z".parse().unwrap());
        let registry = Emulator::new(Registry::in_memory(Settings::default(), clock), clock);
        let network = Network::default();
        network.mount(HOST, registry.transport());
        let http = Client::builder("registry", clock).transport(network.transport());
        let client = RegistryClient::new(
            http.build().unwrap(),
            Credentials::none(),
            Options::default(),
        );
        let lab = Self {
            registry,
            network,
            client,
            clock,
        };
        for image in sample::release() {
            lab.push(&image).await;
        }
        lab
    }

    pub(in crate::payload_image) async fn push(&self, image: &SampleImage) {
        let target = reference(&format!("ocp/{}:v1", image.name));
        sample::push(&self.client, &image.build().unwrap(), &target)
            .await
            .unwrap();
    }

    pub(in crate::payload_image) async fn build(&self, request: Request) -> Result<Built, Error> {
        build(&self.client, request).await
    }
}

pub(in crate::payload_image) fn reference(text: &str) -> ImageRef {
    format!("{HOST}/{text}").parse().unwrap()
}

pub(in crate::payload_image) fn request() -> Request {
    let components = sample::release().into_iter().map(|image| Component {
        pull_spec: format!("{HOST}/ocp/{}:v1", image.name),
        name: image.name,
        ..Component::default()
    });
    Request {
        components: components.collect(),
        release: Release {
            name: "4.99.0-ci.7".to_owned(),
            ..Release::default()
        },
        created: None,
        base: BaseChoice::Component("cluster-version-operator".to_owned()),
        keep_manifest_list: true,
        given: false,
    }
}

#[tokio::test(start_paused = true)]
async fn a_payload_is_assembled_pushed_read_compared_and_extracted() {
    let lab = Lab::open().await;
    let built = lab.build(request()).await.unwrap();
    assert_eq!(built.warnings, [""; 0]);
    let target = reference("ocp/release");
    let pushed = push(&lab.client, &built, &target, &Progress::default())
        .await
        .unwrap();
    assert_eq!(pushed, reference("ocp/release:4.99.0-ci.7"));
    let read = reader::read(&lab.client, &pushed, &[]).await.unwrap();
    assert_eq!(read.manifest, *built.manifest().unwrap());
    assert_eq!(read.config.label(image::RELEASE), Some("4.99.0-ci.7"));
    assert_eq!(read.contents.files, built.contents.files);
    let names: Vec<_> = read
        .contents
        .references
        .spec
        .tags
        .iter()
        .map(|tag| tag.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "cli",
            "cluster-version-operator",
            "dns-operator",
            "web-operator"
        ]
    );
    assert!(difference(&read, &read).is_empty());
    let files = extract::all(&read.contents).unwrap();
    let config = files
        .files
        .iter()
        .find(|it| it.name == "0000_50_dns-operator_01_config.yaml")
        .unwrap();
    assert!(String::from_utf8_lossy(&config.content).contains("version: 4.99.0-ci.7"));
    let images = verify::images(&lab.client, &read, &[]).await;
    assert!(
        images.len() == 4 && images.iter().all(|it| it.result.is_ok()),
        "{images:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_same_images_give_the_same_digest_whatever_the_time_and_the_order() {
    let lab = Lab::open().await;
    let one = lab.build(request()).await.unwrap();
    lab.clock.sleep(std::time::Duration::from_hours(50)).await;
    let mut reversed = request();
    reversed.components.reverse();
    let other = lab.build(reversed).await.unwrap();
    assert_eq!(
        one.manifest().unwrap().digest,
        other.manifest().unwrap().digest
    );
    let mut nameless = request();
    nameless.release.name.clear();
    let nameless = lab.build(nameless).await.unwrap();
    assert_eq!(nameless.name, "0.0.1-2026-01-02-030510");
}

#[tokio::test(start_paused = true)]
async fn content_that_is_kept_on_the_machine_is_not_asked_for_again() {
    let lab = Lab::open().await;
    let first = lab.build(request()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let client = lab.client.with_cache(ContentCache::new(folder.path()));
    let by_digest = || Request {
        components: input::from_payload(&first.contents.references).unwrap(),
        ..request()
    };
    let calls = async |client: &RegistryClient| {
        lab.registry.calls().clear();
        let built = build(client, by_digest()).await.unwrap();
        assert_eq!(
            built.manifest().unwrap().digest,
            first.manifest().unwrap().digest
        );
        lab.registry.calls().lines()
    };
    let cold = calls(&client).await;
    assert_eq!(cold, calls(&lab.client).await, "nothing is there yet");
    let mut once = cold.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), cold.len(), "nothing is read twice: {cold:?}");
    assert_eq!(calls(&client).await, [""; 0]);
    // What was changed on the disk is not believed.
    for file in std::fs::read_dir(folder.path().join("sha256")).unwrap() {
        std::fs::write(file.unwrap().path(), "{}").unwrap();
    }
    assert_eq!(calls(&client).await, cold);
    // A tag may stand for another image by now.
    lab.registry.calls().clear();
    build(&client, request()).await.unwrap();
    let tags = lab.registry.calls().lines();
    assert!(
        tags.iter().all(|line| line.contains("/manifests/v1")),
        "{tags:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_folder_of_components_gives_the_files_that_their_images_give() {
    let lab = Lab::open().await;
    let from_images = lab.build(request()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let references = from_images.contents.references_bytes().unwrap();
    std::fs::write(folder.path().join("image-references"), references).unwrap();
    for image in sample::release() {
        let files = image.files.iter();
        for (name, content) in files.filter(|(name, _)| name.starts_with("manifests/")) {
            let own = folder.path().join(&image.name);
            std::fs::create_dir_all(&own).unwrap();
            let name = name.trim_start_matches("manifests/");
            std::fs::write(own.join(name), content).unwrap();
        }
    }
    let found = input::from_folder(folder.path()).unwrap();
    assert_eq!(found.created, Some(from_images.created));
    lab.registry.calls().clear();
    let mut wanted = request();
    // Without an image there is no base, which would keep this component.
    let kept = "cluster-version-operator".to_owned();
    wanted.release.include.insert(kept);
    let built = lab
        .build(Request {
            components: found.components,
            created: found.created,
            given: true,
            base: BaseChoice::Scratch,
            ..wanted
        })
        .await
        .unwrap();
    assert_eq!(
        lab.registry.calls().lines(),
        [""; 0],
        "no registry is asked"
    );
    assert_eq!(built.contents.references, from_images.contents.references);
    let files = |built: &Built| -> Vec<(String, Vec<u8>)> {
        let files = built.contents.files.iter();
        files
            .map(|file| (file.name.clone(), file.content.clone()))
            .collect()
    };
    assert_eq!(files(&built), files(&from_images));
}

#[tokio::test(start_paused = true)]
async fn a_push_that_fails_leaves_the_tag_as_it_was() {
    let lab = Lab::open().await;
    let target = reference("ocp/release:4.99.0-ci.7");
    let old = lab.build(request()).await.unwrap();
    push(&lab.client, &old, &target, &Progress::default())
        .await
        .unwrap();
    let mut changed = request();
    changed.release.previous = vec!["4.98.0".to_owned()];
    let new = lab.build(changed).await.unwrap();
    for path in [
        "/v2/ocp/release/blobs/uploads/*",
        "/v2/ocp/release/manifests/*",
    ] {
        let refusal = Fault::Refused(Refusal::of(StatusCode::FORBIDDEN));
        lab.registry
            .faults()
            .inject(CallMatcher::path(path), refusal);
        let error = push(&lab.client, &new, &target, &Progress::default())
            .await
            .unwrap_err();
        assert!(
            why::chain(&error).contains("reg.example.com/ocp/release"),
            "{error}"
        );
        lab.registry.faults().clear();
        let found = lab.client.find(&target).await.unwrap().unwrap();
        assert_eq!(found.digest, old.manifest().unwrap().digest, "{path}");
    }
    push(&lab.client, &new, &target, &Progress::default())
        .await
        .unwrap();
    let digest = target.at_digest(&sha256(b"x"));
    assert!(matches!(
        push(&lab.client, &new, &digest, &Progress::default()).await,
        Err(Error::TargetDigest(_))
    ));
}

#[tokio::test(start_paused = true)]
async fn a_list_stays_a_list_and_its_images_get_the_same_layer() {
    let lab = Lab::open().await;
    let image = sample::release().remove(0);
    let built = image.build().unwrap();
    let child = |architecture: &str| {
        serde_json::json!({
            "mediaType": built.manifest.media_type, "size": built.manifest.bytes.len(),
            "digest": built.manifest.digest.to_string(),
            "platform": {"os": "linux", "architecture": architecture},
        })
    };
    let attestation = serde_json::json!({
        "mediaType": built.manifest.media_type, "size": built.manifest.bytes.len(), "digest": built.manifest.digest.to_string(),
        "platform": {"os": "unknown", "architecture": "unknown"}, "annotations": {"vnd.docker.reference.type": "attestation-manifest"},
    });
    let list = serde_json::json!({
        "schemaVersion": 2, "mediaType": crate::oci::media_type::OCI_INDEX,
        "manifests": [child("amd64"), child("arm64"), attestation],
    });
    let list = Manifest::read(list.to_string().into(), None, None).unwrap();
    lab.client
        .push_manifest(&reference("ocp/cluster-version-operator:v1"), &list)
        .await
        .unwrap();
    let multi = lab.build(request()).await.unwrap();
    assert_eq!(multi.images.len(), 2);
    let target = reference("ocp/release:multi");
    push(&lab.client, &multi, &target, &Progress::default())
        .await
        .unwrap();
    let found = lab.client.manifest(&target).await.unwrap();
    let platforms: Vec<_> = found.descriptors().map(platform::platform).collect();
    assert_eq!(platforms, ["linux/amd64", "linux/arm64"]);
    let read = reader::read(
        &lab.client,
        &target,
        &[PlatformFilter::parse("arm64").unwrap()],
    )
    .await
    .unwrap();
    assert_eq!(read.list.as_ref().map(|it| &it.digest), Some(&found.digest));
    let single = Request {
        keep_manifest_list: false,
        ..request()
    };
    assert!(lab.build(single).await.unwrap().list.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_payload_is_mirrored_with_its_images_and_last_itself() {
    let lab = Lab::open().await;
    let built = lab.build(request()).await.unwrap();
    let target = reference("ocp/release");
    let pushed = push(&lab.client, &built, &target, &Progress::default())
        .await
        .unwrap();
    let payload = reader::read(&lab.client, &pushed, &[]).await.unwrap();
    let to = Target::parse("mirror.example.com/ocp/release").unwrap();
    let plan = mirror::plan(&payload, &to, &MirrorOptions::default()).unwrap();
    let other = Emulator::new(
        Registry::in_memory(Settings::default(), lab.clock),
        lab.clock,
    );
    lab.network.mount("mirror.example.com", other.transport());
    other.faults().inject(
        CallMatcher::path("/v2/ocp/release/manifests/*cli")
            .method(Method::PUT)
            .times(1),
        Fault::Refused(Refusal::of(StatusCode::FORBIDDEN)),
    );
    let failures = mirror::run(&lab.client, &plan, &Progress::default()).await;
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0].component, "cli");
    let itself = &plan.payload.as_ref().unwrap().target;
    assert_eq!(
        lab.client.find(itself).await.unwrap(),
        None,
        "not before its images"
    );
    assert!(
        mirror::run(&lab.client, &plan, &Progress::default())
            .await
            .is_empty()
    );
    assert_eq!(
        lab.client.find(itself).await.unwrap().unwrap().digest,
        payload.manifest.digest
    );
}

#[tokio::test(start_paused = true)]
async fn bad_images_are_refused_by_name() {
    let lab = Lab::open().await;
    let reason = async |change: &dyn Fn(&mut Request)| {
        let mut wanted = request();
        change(&mut wanted);
        why::chain(&lab.build(wanted).await.unwrap_err())
    };
    let missing = reason(&|it| it.components[0].pull_spec = format!("{HOST}/ocp/nothing:v1")).await;
    assert!(
        missing.contains("component cluster-version-operator")
            && missing.contains("does not exist"),
        "{missing}"
    );
    let twice = reason(&|it| {
        let again = it.components[1].clone();
        it.components.push(again);
    })
    .await;
    assert!(twice.contains("given twice"), "{twice}");
    let name = reason(&|it| it.components[0].pull_spec = "not a name".to_owned()).await;
    assert!(
        name.contains("cluster-version-operator") && name.contains("not the name of an image"),
        "{name}"
    );
    let escaping = SampleImage::new("evil", &[(OPERATOR, "true")], &[("../../etc/passwd", "x")]);
    lab.push(&escaping).await;
    let evil = reason(&|it| {
        it.components.push(Component {
            name: "evil".to_owned(),
            pull_spec: format!("{HOST}/ocp/evil:v1"),
            ..Component::default()
        });
    })
    .await;
    assert!(
        evil.contains("component evil") && evil.contains("leads out of the image"),
        "{evil}"
    );
    let plain = reader::read(&lab.client, &reference("ocp/cli:v1"), &[])
        .await
        .unwrap_err();
    assert!(why::chain(&plain).contains("not a payload"), "{plain}");
}

#[tokio::test(start_paused = true)]
async fn a_layer_that_is_changed_gives_no_payload_and_one_that_is_cut_is_resumed() {
    let lab = Lab::open().await;
    let blobs = || CallMatcher::path("/v2/ocp/web-operator/blobs/*").method(Method::GET);
    lab.registry.faults().inject(blobs(), Fault::Corrupted(20));
    let error = lab.build(request()).await.unwrap_err();
    assert!(why::chain(&error).contains("web-operator"), "{error}");
    assert_eq!(lab.registry.faults().unused(), [""; 0]);
    lab.registry.faults().clear();
    // What is cut is asked for again, from where it ended, a few times.
    let cut = Fault::Truncated(100);
    lab.registry.faults().inject(blobs().times(3), cut);
    lab.build(request()).await.unwrap();
    assert_eq!(lab.registry.faults().unused(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_payload_goes_through_a_folder_to_another_registry() {
    let lab = Lab::open().await;
    let built = lab.build(request()).await.unwrap();
    let pushed = push(
        &lab.client,
        &built,
        &reference("ocp/release"),
        &Progress::default(),
    )
    .await
    .unwrap();
    let payload = reader::read(&lab.client, &pushed, &[]).await.unwrap();
    let root = tempfile::tempdir().unwrap();
    let folder = ImageFolder::new(root.path());
    let here = Target::parse("openshift/release").unwrap();
    let down = mirror::plan(&payload, &here, &MirrorOptions::default()).unwrap();
    let download =
        async || mirror::download(&lab.client, &down, &folder, &Progress::default()).await;
    let blobs = CallMatcher::path("/v2/ocp/cli/blobs/*").method(Method::GET);
    let refused = Fault::Refused(Refusal::of(StatusCode::FORBIDDEN));
    lab.registry.faults().inject(blobs.times(1), refused);
    assert_eq!(download().await.len(), 1);
    let itself = down.payload.as_ref().unwrap().target.clone();
    assert!(folder.manifest(&itself).is_err(), "not before its images");
    assert_eq!(download().await.len(), 0);
    let again = reader::read_from_folder(&folder, &itself, &[]).unwrap();
    assert_eq!(again.contents, payload.contents);
    assert_eq!(again.manifest.digest, payload.manifest.digest);
    let other = Emulator::new(
        Registry::in_memory(Settings::default(), lab.clock),
        lab.clock,
    );
    lab.network.mount("mirror.example.com", other.transport());
    let there = Target::parse("mirror.example.com/ocp/release").unwrap();
    let up = mirror::plan(&again, &there, &MirrorOptions::default()).unwrap();
    let repository = itself.bare();
    let upload =
        async || mirror::upload(&folder, &repository, &lab.client, &up, &Progress::default()).await;
    assert_eq!(upload().await.len(), 0);
    let mirrored = &up.payload.as_ref().unwrap().target;
    let found = reader::read(&lab.client, mirrored, &[]).await.unwrap();
    assert_eq!(found.manifest.digest, payload.manifest.digest);
    for image in &up.images {
        let found = lab.client.find(&image.target).await.unwrap().unwrap();
        assert_eq!(Some(found.digest), image.source.digest());
    }
}

#[tokio::test(start_paused = true)]
async fn a_folder_that_was_changed_on_its_way_is_refused_by_the_path_of_the_file() {
    let lab = Lab::open().await;
    let image = SampleImage::new("cli", &[], &[("usr/bin/cli", "a program")]);
    let built = image.build().unwrap();
    let root = tempfile::tempdir().unwrap();
    let folder = ImageFolder::new(root.path());
    let (source, name) = (reference("ocp/single:v1"), "o/single:v1".parse().unwrap());
    sample::push(&lab.client, &built, &source).await.unwrap();
    transfer::download(&lab.client, &source, &folder, &name, &Progress::default())
        .await
        .unwrap();
    let layer = root
        .path()
        .join(format!("v2/o/single/blobs/{}", built.layer.digest));
    let mut bytes = std::fs::read(&layer).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&layer, &bytes).unwrap();
    let upload = async || {
        let target = reference("ocp/again:v1");
        let copied =
            transfer::upload(&folder, &name, &lab.client, &target, &Progress::default()).await;
        (copied, lab.client.find(&target).await.unwrap())
    };
    let (copied, found) = upload().await;
    let error = why::chain(&copied.unwrap_err());
    assert!(error.contains(layer.to_str().unwrap()), "{error}");
    assert_eq!(found, None, "nothing is under the tag");
    bytes.pop();
    std::fs::write(&layer, &bytes).unwrap();
    let (copied, found) = upload().await;
    assert!(copied.is_err() && found.is_none());
    std::fs::remove_file(&layer).unwrap();
    let (copied, found) = upload().await;
    assert!(copied.is_err() && found.is_none());
}
