//! The programs and files that tests find through their environment.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::tools::{self, debian};

/// What a test finds in `variable`; nothing if it cannot be had here, and the test is skipped.
pub(super) struct Client {
    pub(super) variable: &'static str,
    pub(super) path: Option<PathBuf>,
}

/// Gets all of them, and says of each what came of it.
pub(super) fn set_up() -> Vec<Client> {
    let kubectl = tools::kubectl().map(|kubectl| (kubectl.version, kubectl.path));
    let helm = tools::helm().map(|helm| (helm.version, helm.path));
    let testdata = tools::api_testdata();
    let testdata = testdata.map(|path| ("of the Go module k8s.io/api".to_owned(), path));
    let mut clients = vec![
        client("NEAP_KUBECTL", "kubectl", kubectl, true),
        client("NEAP_HELM", "helm", helm, true),
        client("NEAP_API_TESTDATA", "API test data", testdata, false),
    ];
    let crane = tools::crane().map(|path| (String::new(), path));
    clients.push(client("NEAP_CRANE", "crane", crane, true));
    let sdk = tools::azure_sdk().map(|path| (tools::azure_sdk_releases(), path));
    clients.push(client("NEAP_AZURE_SDK", "Azure SDK", sdk, false));
    clients.extend(debian::FOR_TESTS.map(|program| {
        let found = debian::get(program).map(|path| (String::new(), path));
        client(program.variable, program.name, found, true)
    }));
    clients
}

fn client(
    variable: &'static str,
    name: &str,
    found: Result<(String, PathBuf)>,
    shown: bool,
) -> Client {
    let path = match found {
        Ok((version, path)) => {
            let place = if shown { &*path } else { Path::new("") };
            let line = format!("{version} {}", place.display());
            println!(" ✓ {name:<20} {}", line.trim());
            Some(path)
        }
        Err(error) => {
            println!(" ! {name:<20} none, tests that need it are skipped: {error:#}");
            None
        }
    };
    Client { variable, path }
}
