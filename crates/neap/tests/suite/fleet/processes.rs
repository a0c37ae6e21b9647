//! `neap fleet rp`: frontend and backend as processes over one database, with certificates of callers.

use std::{
    fs,
    io::{Read, Write},
    net::{IpAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use http::Method;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    SanType, date_time_ymd,
};
use serde_json::{Value, json};

use super::{
    arm_client::{ArmClient, Identity},
    fleet_server::{FleetServer, SUBSCRIPTION, until},
};
use crate::idle::address;

const API: &str = "api-version=2025-07-25";
const ADMIN: &str = "admin.example.com";
/// The client secret in the example.
const SECRET: &str = "replace-me";

/// An authority of certificates.
struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = parameters.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(parameters, key);
        Self {
            certificate,
            issuer,
        }
    }

    /// A certificate with this name, changed by `change`.
    fn identity(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut parameters);
        Identity {
            certificate: parameters.signed_by(&key, &self.issuer).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }
}

/// A process that is killed on drop.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    /// Stops it with a signal, and waits for the end.
    fn stop(mut self) -> Option<i32> {
        let id = self.0.id().to_string();
        let sent = Command::new("kill").args(["-s", "TERM", &id]).status();
        assert!(sent.unwrap().success());
        self.0.wait().unwrap().code()
    }
}

/// The files that the processes of a region share.
struct Region {
    folder: PathBuf,
    listen: String,
}

impl Region {
    fn process(&self, arguments: &[&str]) -> Process {
        let file = |name: &str| self.folder.join(name).display().to_string();
        let store = format!("sqlite:{}", file("region.db"));
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.folder.join("log"))
            .unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_neap"));
        command
            .args(["fleet", "rp", "--location", "local"])
            .args(["--domain", "local.aroapp.example.com"])
            .args(["--store", &store, "--keys", &file("keys")])
            .args(arguments)
            .env_clear()
            .env("HOME", &self.folder)
            .env("TMPDIR", &self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        Process(command.spawn().unwrap())
    }

    fn frontend(&self) -> Process {
        let file = |name: &str| self.folder.join(name).display().to_string();
        self.process(&[
            "--frontend",
            "--listen",
            &self.listen,
            "--tls-cert",
            &file("server.crt"),
            "--tls-key",
            &file("server.key"),
            "--arm-client-certs",
            &file("arm.pem"),
            "--admin-ca",
            &file("admin-ca.pem"),
            "--admin-common-name",
            ADMIN,
            "--readiness-delay",
            "0s",
        ])
    }

    /// A backend, whose metrics are at the port 9090 of the region.
    fn backend(&self, hive: &Path) -> Process {
        let (hive, metrics) = (hive.to_str().unwrap(), self.metrics());
        self.process(&[
            "--backend",
            "--hive-kubeconfig",
            hive,
            "--metrics-listen",
            &metrics,
        ])
    }

    fn metrics(&self) -> String {
        self.listen.replace(":8443", ":9090")
    }
}

fn example_body() -> Value {
    let file = super::fleet_server::repository("examples/fleet/cluster.json");
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

#[expect(
    clippy::too_many_lines,
    reason = "one story: callers, a cluster, its end"
)]
#[tokio::test]
async fn a_frontend_and_two_backends_share_a_database() {
    let hive = FleetServer::start();
    // The Hive of `neap up` starts with its own provider.
    hive.succeeds(&["fleet", "list"]);
    let folder = hive.sandbox.path("region");
    fs::create_dir_all(folder.join("keys")).unwrap();
    let host = address();
    let region = Region {
        listen: format!("{host}:8443"),
        folder,
    };
    let (servers, arm, admins) = (Authority::new(), Authority::new(), Authority::new());
    let ip: IpAddr = host.parse().unwrap();
    let own = servers.identity("rp", |it| {
        it.subject_alt_names.push(SanType::IpAddress(ip));
        it.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    });
    let known = arm.identity("arm", |_| {});
    let expired = arm.identity("arm", |it| it.not_after = date_time_ymd(2020, 1, 1));
    let admin = admins.identity(ADMIN, |_| {});
    let named = |name: &str| admins.identity(name, |_| {});
    let write = |name: &str, text: &str| fs::write(region.folder.join(name), text).unwrap();
    write("server.crt", &own.certificate);
    write("server.key", &own.key);
    write(
        "arm.pem",
        &(known.certificate.clone() + &expired.certificate),
    );
    write("admin-ca.pem", &admins.certificate);
    let frontend = region.frontend();
    let url = format!("https://{}", region.listen);
    let client = |identity: Option<&Identity>| ArmClient::new(&url, &servers.certificate, identity);
    let (nobody, caller) = (client(None), client(Some(&known)));
    until("the frontend is ready", async || {
        let answer = nobody.try_send(Method::GET, "/healthz/ready", None).await;
        (answer?.status == 200).then_some(())
    })
    .await;

    let operations = "/providers/Microsoft.RedHatOpenShift/operations";
    let versions = "/admin/versions";
    for (who, identity, arm_status, admin_status) in [
        ("nobody", None, 403, 403),
        ("ARM", Some(known.clone()), 200, 403),
        ("an expired ARM", Some(expired), 403, 403),
        (
            "one signed like ARM",
            Some(arm.identity("arm", |_| {})),
            403,
            403,
        ),
        ("an administrator", Some(admin.clone()), 403, 200),
        ("another name", Some(named("other.example.com")), 403, 403),
        (
            "a foreign authority",
            Some(arm.identity(ADMIN, |_| {})),
            403,
            403,
        ),
        (
            "an expired administrator",
            Some(admins.identity(ADMIN, |it| it.not_after = date_time_ymd(2020, 1, 1))),
            403,
            403,
        ),
    ] {
        let client = client(identity.as_ref());
        let got = (
            client.get(operations).await.status,
            client.get(versions).await.status,
        );
        assert_eq!(got, (arm_status, admin_status), "{who}");
    }
    // Not even the existence of a path is told.
    let refused = nobody.get("/nowhere").await;
    assert_eq!(refused.refusal(), (403, "Forbidden"));

    let administrator = client(Some(&admin));
    let version = json!({"properties": {
        "version": "4.19.9", "enabled": true, "default": true,
        "openShiftPullspec": "registry.example.com/release:1",
        "installerPullspec": "registry.example.com/installer:1",
    }});
    let made = administrator
        .send(Method::PUT, versions, Some(&version))
        .await;
    assert_eq!(made.status, 201, "{}", made.body);
    let subscription = format!("/subscriptions/{SUBSCRIPTION}?api-version=2.0");
    let registered = json!({"state": "Registered", "properties": {"tenantId": "t"}});
    let made = caller
        .send(Method::PUT, &subscription, Some(&registered))
        .await;
    assert_eq!(made.status, 201, "{}", made.body);

    let cluster = format!(
        "/subscriptions/{SUBSCRIPTION}/resourceGroups/g/providers/Microsoft.RedHatOpenShift/openShiftClusters/blue?{API}"
    );
    // The version is read from the change feed, a moment after it was written.
    let created = until("the version is known", async || {
        let body = example_body();
        let answer = caller.send(Method::PUT, &cluster, Some(&body)).await;
        let is_unknown = answer.body["error"]["target"] == "properties.clusterProfile.version";
        (!is_unknown).then_some(answer)
    });
    let created = created.await;
    assert_eq!(created.status, 201, "{}", created.body);
    let operation = created.headers["azure-asyncoperation"].to_str().unwrap();
    let operation = operation.strip_prefix(&url).unwrap().to_owned();

    // One backend begins and hands over, another one ends the work.
    let first = region.backend(&hive.kubeconfig());
    until("the work has begun", async || {
        let status = caller.get(&operation).await;
        let done = status.body["properties"]["stepsDone"].as_u64();
        (done? > 0 || status.body["status"] != "Creating").then_some(())
    })
    .await;
    assert_eq!(first.stop(), Some(0), "{}", region.log());
    let second = region.backend(&hive.kubeconfig());
    let status = until("the work has ended", async || {
        let status = caller.get(&operation).await.body;
        (status["status"] != "Creating").then_some(status)
    });
    let status = status.await;
    assert_eq!(status["status"], "Succeeded", "{status} {}", region.log());

    let metrics = get_plain(&region.metrics(), "/metrics");
    assert!(
        metrics.contains("hiveClusterInstallationComplete"),
        "{metrics}"
    );
    let credentials = |action: &str| cluster.replace('?', &format!("/{action}?"));
    let password = caller
        .send(Method::POST, &credentials("listCredentials"), None)
        .await;
    let password = password.body["kubeadminPassword"]
        .as_str()
        .unwrap()
        .to_owned();
    let kubeconfig = caller
        .send(Method::POST, &credentials("listAdminCredentials"), None)
        .await;
    let kubeconfig = kubeconfig.body["kubeconfig"].as_str().unwrap().to_owned();
    for (what, text) in [("the metrics", metrics), ("the log", region.log())]
        .into_iter()
        .chain(region.database())
    {
        for secret in [
            SECRET,
            &password,
            &kubeconfig,
            "PRIVATE KEY",
            "client-key-data",
        ] {
            assert!(!text.contains(secret), "a secret is in {what}: {secret}");
        }
    }

    let deleted = caller.send(Method::DELETE, &cluster, None).await;
    assert_eq!(deleted.status, 202, "{}", deleted.body);
    until("the cluster is gone", async || {
        (caller.get(&cluster).await.status == 404).then_some(())
    })
    .await;
    let bills = administrator.get("/admin/billingdocuments").await.body;
    let billing = &bills["value"][0]["billing"];
    assert!(billing["creationTime"].is_number(), "{bills}");
    assert!(billing["deletionTime"].is_number(), "{bills}");
    for process in [second, frontend] {
        assert_eq!(process.stop(), Some(0), "{}", region.log());
    }
}

/// The answer to a GET without TLS.
fn get_plain(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

impl Region {
    /// What is in the files of the database, as far as it is text.
    fn database(&self) -> Vec<(&'static str, String)> {
        let files = ["region.db", "region.db-wal"];
        let read = files.map(|name| {
            let bytes = fs::read(self.folder.join(name)).unwrap();
            (name, String::from_utf8_lossy(&bytes).into_owned())
        });
        assert!(read.iter().any(|(_, text)| text.contains("clientId")));
        read.into()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap()
    }
}
