//! The Python SDK of Azure drives the provider of `neap up`.

use std::{fs, path::PathBuf, process::Command};

use super::fleet_server::{FleetServer, repository};
use crate::skip::skip;

#[tokio::test]
async fn the_python_sdk_creates_reads_changes_and_deletes_a_cluster() {
    let test = "the_python_sdk_creates_reads_changes_and_deletes_a_cluster";
    let Some(sdk) = std::env::var_os("NEAP_AZURE_SDK") else {
        skip(test, "NEAP_AZURE_SDK is not set; run cargo xtask test");
        return;
    };
    let server = FleetServer::start();
    let (url, authority) = server.provider().await;
    let file = server.sandbox.path("fleet-ca.crt");
    fs::write(&file, authority).unwrap();
    // Each speaks another version of the API.
    for release in ["4.0.0", "2.0.0"] {
        let packages = PathBuf::from(&sdk).join(release);
        assert!(packages.is_dir(), "{}", packages.display());
        let output = Command::new("python3")
            .arg(repository("examples/fleet/sdk.py"))
            .arg(&url)
            .arg(&file)
            .env("PYTHONPATH", packages)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{release}: {printed}{error}");
        for text in ["4.19.9", "created", "deleted\n"] {
            assert!(printed.contains(text), "{release}: {printed}");
        }
    }
}
