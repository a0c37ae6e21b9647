//! Releases near the size limit of a Secret.

use neap_load::rng::SeededRng;

use super::helm_cluster::HelmCluster;

const LIMIT: usize = 1 << 20;

/// Text that does not compress much below three quarters of its length.
fn noise(length: usize) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut rng = SeededRng::new(4);
    let letter = |_| char::from(LETTERS[rng.below(64)]);
    (0..length).map(letter).collect()
}

#[tokio::test]
async fn release_can_fill_a_secret_but_not_exceed_it() {
    let Some(cluster) = HelmCluster::start("release_can_fill_a_secret_but_not_exceed_it") else {
        return;
    };
    // Helm stores the values and the rendered manifests, compressed and base64-encoded.
    cluster.file("fits.yaml", &format!("cargo: x{}\n", noise(500_000)));
    cluster.file("more.yaml", &format!("cargo: x{}\n", noise(550_000)));
    let install = "install tern CHART --create-namespace --set replicas=0 -f";
    cluster.ok(&format!("{install} fits.yaml"));
    let path = "/api/v1/namespaces/bay/secrets/sh.helm.release.v1.tern.v1";
    let secret = cluster.object(path).await;
    let encoded = secret["data"]["release"].as_str().unwrap().len();
    let bytes = encoded / 4 * 3;
    assert!((LIMIT * 9 / 10..LIMIT + 3).contains(&bytes), "{bytes}");
    cluster.ok("upgrade tern CHART --set replicas=0,tide=high -f fits.yaml");
    assert_eq!(cluster.history("tern").len(), 2);
    assert!(cluster.ok("get values tern").len() > 500_000);

    let said = cluster.refused("upgrade tern CHART --set replicas=0 -f more.yaml");
    assert!(
        said.contains("data: Too long: may not be more than 1048576 bytes"),
        "{said}"
    );
    cluster.ok("uninstall tern");
}
