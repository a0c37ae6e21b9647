//! Real clients against our registry, and between ours and Debian's.

use std::path::Path;

use http::Method;
use neap_emulators::registry::{Access, Digest, User};
use neap_kit::{client::Client, clock::Clock};
use serde_json::{Value, json};

use crate::peers::{Debian, Ours, program, run};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// An archive without files, 1024 zeros, compressed.
const LAYER: [u8; 29] = [
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0xff, 0x63, 0x60, 0x18, 0x05, 0xa3, 0x60,
    0x14, 0x8c, 0x54, 0x00, 0x00, 0x2e, 0xaf, 0xb5, 0xef, 0x00, 0x04, 0x00, 0x00,
];

/// Pushes an image for each architecture and an index of both; the digest of the index.
async fn push_image(address: &str, credentials: Option<(&str, &str)>) -> String {
    let client = Client::builder("test", Clock::system()).build().unwrap();
    let send = async |method: Method, path: &str, kind: &str, body: Vec<u8>| {
        let address = format!("http://{address}/v2/lib/app/{path}");
        let mut request = client.request(method, address).header("content-type", kind);
        if let Some((user, password)) = credentials {
            request = request.basic(user, password);
        }
        let answer = request.body(body).fetch(1 << 20).await.unwrap();
        answer.success().unwrap()
    };
    let mut manifests = Vec::new();
    let layer = LAYER.to_vec();
    let diff_id = Digest::of(&[0_u8; 1024]).to_string();
    let layer_digest = Digest::of(&layer).to_string();
    for architecture in ["amd64", "arm64"] {
        let config = json!({
            "architecture": architecture, "os": "linux", "config": {},
            "rootfs": {"type": "layers", "diff_ids": [diff_id]},
        });
        let config = config.to_string().into_bytes();
        let config_digest = Digest::of(&config).to_string();
        for (digest, blob) in [(&config_digest, &config), (&layer_digest, &layer)] {
            let path = format!("blobs/uploads/?digest={digest}");
            send(
                Method::POST,
                &path,
                "application/octet-stream",
                blob.clone(),
            )
            .await;
        }
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": {
                "mediaType": "application/vnd.oci.image.config.v1+json",
                "digest": config_digest, "size": config.len(),
            },
            "layers": [{
                "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
                "digest": layer_digest, "size": layer.len(),
            }],
        });
        let manifest = manifest.to_string().into_bytes();
        let digest = Digest::of(&manifest).to_string();
        let path = format!("manifests/{digest}");
        send(Method::PUT, &path, MANIFEST, manifest.clone()).await;
        manifests.push(json!({
            "mediaType": MANIFEST, "digest": digest, "size": manifest.len(),
            "platform": {"architecture": architecture, "os": "linux"},
        }));
    }
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests});
    let index = index.to_string().into_bytes();
    let digest = Digest::of(&index).to_string();
    send(Method::PUT, "manifests/v1", INDEX, index).await;
    digest
}

#[tokio::test(flavor = "multi_thread")]
async fn skopeo_copies_between_our_registry_and_debians() {
    let test = "skopeo_copies_between_our_registry_and_debians";
    let Some(skopeo) = program(test, "NEAP_SKOPEO") else {
        return;
    };
    let Some(debian) = Debian::start(test).await else {
        return;
    };
    let ours = Ours::start(Access::Open).await;
    let digest = push_image(&ours.address, None).await;
    let home = tempfile::tempdir().unwrap();
    let skopeo = |args: &[&str]| {
        let policy = ["--insecure-policy"].iter();
        run(
            &skopeo,
            home.path(),
            &policy.chain(args).copied().collect::<Vec<_>>(),
        )
    };
    let copy = |from: &str, to: &str| {
        let (from, to) = (format!("docker://{from}"), format!("docker://{to}"));
        let args = [
            "copy",
            "--all",
            "--preserve-digests",
            "--src-tls-verify=false",
            "--dest-tls-verify=false",
            &from,
            &to,
        ];
        skopeo(&args).unwrap();
    };
    let there = format!("{}/copied/app:v1", debian.address);
    let back = format!("{}/back/app:v1", ours.address);
    copy(&format!("{}/lib/app:v1", ours.address), &there);
    copy(&there, &back);
    for tag in ["v2", "v3", "v4"] {
        copy(&there, &format!("{}/back/app:{tag}", ours.address));
    }
    let raw = |image: &str| {
        let image = format!("docker://{image}");
        skopeo(&["inspect", "--raw", "--tls-verify=false", &image]).unwrap()
    };
    assert_eq!(Digest::of(raw(&there).as_bytes()).to_string(), digest);
    assert_eq!(Digest::of(raw(&back).as_bytes()).to_string(), digest);
    // Our registry shows two tags in a page, and skopeo follows.
    let repository = format!("docker://{}/back/app", ours.address);
    let tags = skopeo(&["list-tags", "--tls-verify=false", &repository]).unwrap();
    let tags: Value = serde_json::from_str(&tags).unwrap();
    assert_eq!(tags["Tags"], json!(["v1", "v2", "v3", "v4"]));
    let image = format!("docker://{back}");
    let again = format!("docker://{}/again/app:v1", ours.address);
    inspect_and_delete(&skopeo, home.path(), &image, &again);
}

/// Looks at an image, takes it through a folder to another name, and deletes it.
fn inspect_and_delete(
    skopeo: &dyn Fn(&[&str]) -> Result<String, String>,
    home: &Path,
    image: &str,
    again: &str,
) {
    let shown = skopeo(&[
        "inspect",
        "--tls-verify=false",
        "--override-arch=arm64",
        image,
    ]);
    let shown: Value = serde_json::from_str(&shown.unwrap()).unwrap();
    assert_eq!(shown["Architecture"], "arm64");
    let layout = format!("oci:{}:v1", home.join("layout").display());
    skopeo(&["copy", "--src-tls-verify=false", "--all", image, &layout]).unwrap();
    skopeo(&["copy", "--dest-tls-verify=false", "--all", &layout, again]).unwrap();
    skopeo(&["delete", "--tls-verify=false", image]).unwrap();
    assert!(skopeo(&["inspect", "--raw", "--tls-verify=false", image]).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn crane_copies_between_our_registry_and_debians() {
    let test = "crane_copies_between_our_registry_and_debians";
    let Some(crane) = program(test, "NEAP_CRANE") else {
        return;
    };
    let Some(debian) = Debian::start(test).await else {
        return;
    };
    let ours = Ours::start(Access::Open).await;
    let digest = push_image(&ours.address, None).await;
    let home = tempfile::tempdir().unwrap();
    let crane = |args: &[&str]| run(&crane, home.path(), args).unwrap();
    let image = format!("{}/lib/app:v1", ours.address);
    let (there, back) = (
        format!("{}/copied/app:v1", debian.address),
        format!("{}/back/app:v1", ours.address),
    );
    assert_eq!(crane(&["digest", &image]), digest);
    crane(&["copy", &image, &there]);
    crane(&["copy", &there, &back]);
    assert_eq!(crane(&["digest", &back]), digest);
    let repository = format!("{}/back/app", ours.address);
    for tag in ["v2", "v3"] {
        crane(&["tag", &back, tag]);
    }
    assert_eq!(crane(&["ls", &repository]), "v1\nv2\nv3");
    let catalog = crane(&["catalog", &ours.address]);
    assert_eq!(catalog, "back/app\nlib/app");
    let config = crane(&["config", "--platform", "linux/arm64", &image]);
    let config: Value = serde_json::from_str(&config).unwrap();
    assert_eq!(config["architecture"], "arm64");
    crane(&["validate", "--remote", &back]);
    // A copy within a registry sends no blob that is there already.
    ours.registry.calls().clear();
    let beside = format!("{}/beside/app:v1", ours.address);
    crane(&["copy", &image, &beside]);
    let lines = ours.registry.calls().lines();
    let mounted = lines.iter().filter(|line| line.contains("mount=")).count();
    assert!(mounted >= 3, "{lines:#?}");
    assert!(
        !lines.iter().any(|line| line.starts_with("PATCH")),
        "{lines:#?}"
    );
    let by_digest = format!("{repository}@{digest}");
    crane(&["delete", &by_digest]);
    assert_eq!(crane(&["ls", &repository]), "");
}

/// Writes the credentials where clients look for them.
fn sign_in(home: &Path, address: &str, credentials: &str) {
    use base64::{Engine, prelude::BASE64_STANDARD};
    let auth = BASE64_STANDARD.encode(credentials);
    let config = json!({"auths": {address: {"auth": auth}}});
    std::fs::write(home.join("config.json"), config.to_string()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_sign_in_with_a_token_or_a_password() {
    let test = "clients_sign_in_with_a_token_or_a_password";
    let (Some(skopeo), Some(crane)) = (program(test, "NEAP_SKOPEO"), program(test, "NEAP_CRANE"))
    else {
        return;
    };
    let users = || {
        vec![
            User::new("builder", "secret").pushes("*"),
            User::new("reader", "word").pulls("*"),
        ]
    };
    for access in [Access::Basic(users()), Access::Token(users())] {
        let shown = format!("{access:?}");
        let ours = Ours::start(access).await;
        let home = tempfile::tempdir().unwrap();
        let archive = home.path().join("empty.tar");
        std::fs::write(&archive, [0_u8; 1024]).unwrap();
        let archive = archive.display().to_string();
        let image = format!("{}/lib/app:v1", ours.address);
        // crane pushes nothing under a tag that is there with the same digest.
        let push = |tag: &str, credentials: &str| {
            sign_in(home.path(), &ours.address, credentials);
            let image = format!("{}/lib/app:{tag}", ours.address);
            let args = ["append", "-f", &archive, "-t", &image];
            run(&crane, home.path(), &args)
        };
        push("v1", "builder:secret").unwrap();
        assert!(push("v2", "reader:word").is_err(), "{shown}");
        assert!(push("v3", "builder:wrong").is_err(), "{shown}");
        let source = format!("docker://{image}");
        let layout = format!("oci:{}:v1", home.path().join("layout").display());
        let pull = |credentials: &str| {
            let credentials = format!("--src-creds={credentials}");
            let args = [
                "--insecure-policy",
                "copy",
                "--src-tls-verify=false",
                &credentials,
                &source,
                &layout,
            ];
            run(&skopeo, home.path(), &args)
        };
        pull("reader:word").unwrap_or_else(|error| panic!("{shown}: {error}"));
        assert!(pull("reader:wrong").is_err(), "{shown}");
    }
}
