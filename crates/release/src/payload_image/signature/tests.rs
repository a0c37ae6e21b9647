//! Signatures and keys that GnuPG made.

use serde_json::json;

use super::{keys::KeyRing, *};

const DIGEST: &str = "sha256:3c5163464741d20bbd70d63146de6cce96a2ae673e67a2325bd5ee545e9af73e";
const RSA_KEY: &str = include_str!("data/rsa.key.asc");
const ED25519_KEY: &str = include_str!("data/ed25519.key.asc");
const RSA: &[u8] = include_bytes!("data/rsa.asc");
const ED25519: &[u8] = include_bytes!("data/ed25519.asc");
const STRANGER: &[u8] = include_bytes!("data/stranger.asc");
const OTHER_TYPE: &[u8] = include_bytes!("data/other-type.asc");
const EXPIRES: &[u8] = include_bytes!("data/expires.asc");

fn digest() -> Digest {
    crate::oci::digest::parse(DIGEST).unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn verify(key: &str, message: &[u8]) -> Result<Claims, Refusal> {
    let ring = KeyRing::read(key.as_bytes()).unwrap();
    message::verify(&ring, message, &digest(), at("2026-11-19T12:00:00Z"))
}

fn config(keys: &[(&str, &str)], store: &str) -> TrustConfig {
    let mut data = json!({"store-one": store});
    for (name, key) in keys {
        data[format!("verifier-public-key-{name}")] = (*key).into();
    }
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {"name": "x", "annotations": {"release.openshift.io/verification-config-map": ""}},
    });
    TrustConfig::read(map.to_string().as_bytes()).unwrap()
}

#[test]
fn a_signature_by_a_key_of_the_ring_counts() {
    for (key, message) in [(RSA_KEY, RSA), (ED25519_KEY, ED25519)] {
        let claims = verify(key, message).unwrap();
        assert_eq!(claims.reference, "reg.example/ocp/release:4.99.0");
        assert_eq!(claims.creator.as_deref(), Some("example"));
    }
}

#[test]
fn signatures_by_others_of_others_and_of_another_kind_do_not_count() {
    assert!(matches!(verify(RSA_KEY, STRANGER), Err(Refusal::OtherKey)));
    assert!(matches!(verify(ED25519_KEY, RSA), Err(Refusal::OtherKey)));
    assert!(matches!(verify(RSA_KEY, OTHER_TYPE), Err(Refusal::Type(_))));
    let ring = KeyRing::read(RSA_KEY.as_bytes()).unwrap();
    let other = crate::oci::digest::sha256(b"other");
    let now = at("2026-11-19T12:00:00Z");
    let refused = message::verify(&ring, RSA, &other, now);
    assert!(matches!(refused, Err(Refusal::OtherImage(_))));
    assert!(verify(RSA_KEY, b"{}").is_err());
}

#[test]
fn a_signature_ends_when_it_says_so() {
    let ring = KeyRing::read(ED25519_KEY.as_bytes()).unwrap();
    let early = message::verify(&ring, EXPIRES, &digest(), at("2026-11-19T12:00:00Z"));
    assert!(early.is_ok(), "{early:?}");
    let late = message::verify(&ring, EXPIRES, &digest(), at("2026-11-30T00:00:00Z"));
    assert!(matches!(late, Err(Refusal::Expired)));
    let mut ended = ring.clone();
    ended.keys[0].lifetime = Some(1);
    let refused = message::verify(&ended, ED25519, &digest(), at("2026-11-19T12:00:00Z"));
    assert!(matches!(refused, Err(Refusal::KeyEnded)));
    let mut revoked = ring;
    revoked.keys[0].revoked = true;
    let refused = message::verify(&revoked, ED25519, &digest(), at("2026-11-19T12:00:00Z"));
    assert!(matches!(refused, Err(Refusal::KeyEnded)));
}

/// No change of one byte of the message leaves a signature that counts with other claims.
#[test]
fn a_changed_message_never_counts_for_another_claim() {
    let packets = packets::read(ED25519).unwrap();
    let binary: Vec<u8> = packets
        .iter()
        .flat_map(|packet| {
            let length = u32::try_from(packet.body.len()).unwrap().to_be_bytes();
            let head = [0xc0 | packet.tag, 255];
            [&head[..], &length, &packet.body].concat()
        })
        .collect();
    let ring = KeyRing::read(ED25519_KEY.as_bytes()).unwrap();
    let now = at("2026-11-19T12:00:00Z");
    let claims = message::verify(&ring, &binary, &digest(), now).unwrap();
    for at in 0..binary.len() {
        let mut changed = binary.clone();
        changed[at] ^= 1;
        if let Ok(found) = message::verify(&ring, &changed, &digest(), now) {
            assert_eq!(found, claims, "byte {at}");
        }
        let _ = message::verify(&ring, &binary[..at], &digest(), now);
    }
}

#[tokio::test]
async fn every_ring_needs_a_signature_in_a_store() {
    let store = tempfile::tempdir().unwrap();
    let folder = store.path().join(DIGEST.replace(':', "="));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("signature-1"), RSA).unwrap();
    let address = format!("file://{}", store.path().display());
    let both = config(&[("a", RSA_KEY), ("b", ED25519_KEY)], &address);
    let clock = neap_kit::clock::Clock::system();
    let client = neap_kit::client::Client::builder("test", clock)
        .build()
        .unwrap();
    let now = at("2026-11-19T12:00:00Z");
    let look = async || {
        let (found, problems) = trust::signatures(&client, &both, &digest()).await;
        judge(&both, &found, &problems, &digest(), now)
    };
    let one = look().await;
    assert!(!one.is_verified());
    assert!(
        one.problems()[0].starts_with("verifier-public-key-b"),
        "{one:?}"
    );
    std::fs::write(folder.join("signature-2"), ED25519).unwrap();
    assert!(look().await.is_verified());
    let none = judge(&both, &[], &[], &digest(), now);
    assert!(none.problems()[0].contains("no signature"), "{none:?}");
    assert!(
        !Verification::default().is_verified(),
        "no ring verifies nothing"
    );
}

#[test]
fn configurations_that_would_verify_nothing_are_refused() {
    let map = |data: serde_json::Value| {
        json!({
            "kind": "ConfigMap", "apiVersion": "v1", "data": data,
            "metadata": {"annotations": {"release.openshift.io/verification-config-map": ""}},
        })
        .to_string()
    };
    for (data, part) in [
        (
            json!({"store-a": "https://x.example"}),
            "verifier-public-key",
        ),
        (json!({"verifier-public-key-a": RSA_KEY}), "store"),
        (
            json!({"verifier-public-key-a": "no key", "store-a": "https://x.example"}),
            "verifier-public-key-a",
        ),
        (
            json!({"verifier-public-key-a": RSA_KEY, "store-a": "ftp://x.example"}),
            "ftp://",
        ),
    ] {
        let error = TrustConfig::read(map(data).as_bytes()).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
    assert!(TrustConfig::read(b"kind: ConfigMap\napiVersion: v1\n").is_err());
}
