//! The processes of a region: frontends and backends of `neap fleet rp` over one database.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use http::Method;
use serde_json::json;
use tempfile::TempDir;
use tokio::time::sleep;

use super::{
    WAIT_TIMEOUT, arm,
    certificates::{Authority, Identity},
};
use crate::{
    client::Client,
    logged_process::{LoggedProcess, free},
    process,
    server::Server,
    stopwatch::Stopwatch,
};

/// The common name of administrators.
const ADMIN: &str = "admin.example.com";

/// A region. Its processes are ended when it is dropped.
pub(super) struct Region {
    neap: PathBuf,
    store: String,
    address: SocketAddr,
    authority: String,
    arm: Identity,
    admin: Identity,
    frontend: Option<LoggedProcess>,
    pub(super) folder: TempDir,
}

impl Region {
    /// A region over the database at `store`, with one frontend that is ready for requests; in its own
    /// SQLite if there is none.
    pub(super) async fn start(neap: &Path, store: Option<String>) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let address = free()?;
        let (servers, callers, admins) = (Authority::new()?, Authority::new()?, Authority::new()?);
        let database = folder.path().join("region.db");
        let own = || format!("sqlite:{}", database.display());
        let mut region = Self {
            neap: neap.to_owned(),
            store: store.unwrap_or_else(own),
            address,
            authority: servers.certificate.clone(),
            arm: callers.client("arm")?,
            admin: admins.client(ADMIN)?,
            frontend: None,
            folder,
        };
        let server = servers.server(address.ip())?;
        fs::create_dir(region.file("keys"))?;
        for (name, text) in [
            ("server.crt", &server.certificate),
            ("server.key", &server.key),
            ("arm.pem", &region.arm.certificate),
            ("arm.key", &region.arm.key),
            ("authority.pem", &servers.certificate),
            ("callers.pem", &callers.certificate),
            ("admins.pem", &admins.certificate),
        ] {
            fs::write(region.file(name), text)?;
        }
        region.start_frontend().await?;
        region.prepare().await?;
        Ok(region)
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.neap);
        command
            .args(["fleet", "rp", "--location", "local"])
            .args(["--domain", "local.aroapp.example.com"])
            .args(["--store", &self.store, "--keys"])
            .arg(self.file("keys"))
            .env_clear()
            .env("HOME", self.folder.path())
            .env("TMPDIR", self.folder.path());
        command
    }

    async fn start_frontend(&mut self) -> Result<()> {
        let mut command = self.command();
        let address = self.address.to_string();
        command
            .args(["--frontend", "--without-enrichment"])
            .args(["--readiness-delay", "0s", "--listen", &address])
            .args(["--admin-common-name", ADMIN]);
        for (flag, name) in [
            ("--tls-cert", "server.crt"),
            ("--tls-key", "server.key"),
            ("--arm-client-certs", "arm.pem"),
            ("--admin-ca", "admins.pem"),
        ] {
            command.arg(flag).arg(self.file(name));
        }
        let mut frontend = LoggedProcess::start(&mut command).context("cannot run the frontend")?;
        let (client, watch) = (self.client()?, Stopwatch::start());
        while !is_ready(&client).await {
            if frontend.has_ended() || watch.elapsed() > WAIT_TIMEOUT {
                bail!("the frontend is not ready: {}", frontend.last_output()?);
            }
            sleep(Duration::from_millis(50)).await;
        }
        self.frontend = Some(frontend);
        Ok(())
    }

    /// A subscription and a version that the frontend knows.
    async fn prepare(&self) -> Result<()> {
        let mut admin = self.admin()?.connect().await?;
        let version = arm::version_body();
        let made = arm::send(&mut admin, Method::PUT, "/admin/versions", &version).await?;
        ensure!(made.status().is_success(), "no version: {made:?}");
        let mut api = self.client()?.connect().await?;
        let subscription = format!("/subscriptions/{}?api-version=2.0", arm::SUBSCRIPTION);
        let registered = json!({"state": "Registered", "properties": {"tenantId": "t"}});
        let made = arm::send(&mut api, Method::PUT, &subscription, &registered).await?;
        ensure!(made.status().is_success(), "no subscription: {made:?}");
        // The version is read from the change feed, a moment after it was written.
        let (path, body) = (
            arm::cluster_path("probe", "") + "&dryRun=true",
            arm::cluster_body("probe", 0),
        );
        let watch = Stopwatch::start();
        loop {
            let answer = arm::send(&mut api, Method::PUT, &path, &body).await?;
            if answer.status().is_success() {
                return Ok(());
            }
            ensure!(watch.elapsed() < WAIT_TIMEOUT, "no cluster: {answer:?}");
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Starts a backend that installs clusters through the Hive of `hive`.
    pub(super) fn backend(&self, hive: &Server) -> Result<LoggedProcess> {
        let mut command = self.command();
        command.args(["--backend", "--hive-kubeconfig"]);
        command.arg(hive.kubeconfig());
        LoggedProcess::start(&mut command).context("cannot run the backend")
    }

    /// A client with the certificate of ARM.
    pub(super) fn client(&self) -> Result<Client> {
        self.presenting(&self.arm)
    }

    /// A client with the certificate of an administrator.
    pub(super) fn admin(&self) -> Result<Client> {
        self.presenting(&self.admin)
    }

    /// A client of another server with the same certificates.
    pub(super) fn client_of(&self, address: SocketAddr) -> Result<Client> {
        let (address, arm) = (address.to_string(), &self.arm);
        let (certificate, key) = (arm.certificate.as_bytes(), arm.key.as_bytes());
        Client::presenting(&address, self.authority.as_bytes(), certificate, key)
    }

    fn presenting(&self, identity: &Identity) -> Result<Client> {
        Client::presenting(
            &self.address.to_string(),
            self.authority.as_bytes(),
            identity.certificate.as_bytes(),
            identity.key.as_bytes(),
        )
    }

    /// The CPU time of the frontend in seconds.
    pub(super) fn cpu_seconds(&self) -> Result<f64> {
        process::cpu_seconds(self.frontend()?.id())
    }

    /// The resident memory of the frontend.
    pub(super) fn resident_bytes(&self) -> Result<u64> {
        process::resident_bytes(self.frontend()?.id())
    }

    fn frontend(&self) -> Result<&LoggedProcess> {
        self.frontend.as_ref().context("no frontend")
    }
}

async fn is_ready(client: &Client) -> bool {
    let Ok(mut connection) = client.connect().await else {
        return false;
    };
    let answer = connection.send(Method::GET, "/healthz/ready", "").await;
    answer.is_ok_and(|answer| answer.status == 200)
}
