//! The client for registries, from flags, files and the environment.

use std::{env, path::PathBuf};

use clap::Args;
use neap_kit::{
    client::{Client, ClientBuilder, Trust},
    clock::Clock,
    telemetry::Telemetry,
};
use neap_release::oci::{
    client::{Options, RegistryClient},
    credentials::{self, Credentials, Environment},
    platform::PlatformFilter,
    reference::ImageRef,
};

use super::failure;
use crate::exit::{Exit, Failure, chain};

#[derive(Debug, Args)]
pub(in super::super) struct RegistryOptions {
    /// File with credentials of registries; by default those that podman and docker use
    #[arg(short = 'a', long, value_name = "FILE")]
    registry_config: Option<PathBuf>,

    /// Accept plain HTTP and certificates that are not trusted
    #[arg(long)]
    pub(super) insecure: bool,

    /// File with certificates of authorities that are trusted, too
    #[arg(long, value_name = "FILE")]
    certificate_authority: Vec<PathBuf>,

    /// Requests to one registry at a time, and blobs transferred at a time
    #[arg(long, value_name = "NUMBER", default_value_t = 6)]
    max_per_registry: usize,

    /// Show no progress
    #[arg(short, long)]
    pub(super) quiet: bool,
}

impl RegistryOptions {
    /// The client, with the credentials of the usual files.
    pub(super) fn client(&self) -> Result<RegistryClient, Failure> {
        self.client_with(self.credentials()?)
    }

    /// The client of a process in a cluster, whose calls are counted.
    pub(super) fn client_of(
        &self,
        name: &'static str,
        telemetry: Telemetry,
    ) -> Result<RegistryClient, Failure> {
        let http = Client::builder(name, Clock::system()).telemetry(telemetry);
        self.build(http, self.credentials()?)
    }

    /// The client with these credentials.
    pub(super) fn client_with(&self, credentials: Credentials) -> Result<RegistryClient, Failure> {
        self.build(Client::builder("registry", Clock::system()), credentials)
    }

    /// The credentials of the usual files.
    fn credentials(&self) -> Result<Credentials, Failure> {
        let variable = |name: &str| {
            env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let environment = Environment {
            registry_auth_file: variable("REGISTRY_AUTH_FILE"),
            runtime_dir: variable("XDG_RUNTIME_DIR"),
            config_home: variable("XDG_CONFIG_HOME"),
            docker_config: variable("DOCKER_CONFIG"),
            home: variable("HOME"),
            uid: Some(rustix::process::getuid().as_raw()),
        };
        let credentials = credentials::load(&environment, self.registry_config.as_deref());
        credentials.map_err(|error| {
            Failure::new(
                "NT-RELEASE-0108",
                Exit::Usage,
                "cannot use the credentials of registries",
                &chain(&error),
            )
            .remedy("correct the file, or name another with --registry-config")
        })
    }

    fn build(
        &self,
        http: ClientBuilder,
        credentials: Credentials,
    ) -> Result<RegistryClient, Failure> {
        let mut trust = Trust::default();
        for path in &self.certificate_authority {
            let text = std::fs::read(path).map_err(|error| authority(path, &error))?;
            trust = trust
                .with_authorities(&text)
                .map_err(|error| authority(path, &error))?;
        }
        let http = http.trust(trust).build();
        let http = http.map_err(|error| {
            authority(&PathBuf::from("the certificates of this machine"), &error)
        })?;
        let options = Options {
            insecure: self.insecure,
            max_per_registry: self.max_per_registry,
        };
        Ok(RegistryClient::new(http, credentials, options))
    }
}

fn authority(path: &std::path::Path, error: &dyn std::error::Error) -> Failure {
    let what = format!("cannot use {}", path.display());
    Failure::new("NT-RELEASE-0108", Exit::Usage, &what, &chain(error))
        .remedy("name a file with certificates in PEM")
}

/// The name of an image, as the user typed it.
pub(super) fn image(text: &str) -> Result<ImageRef, Failure> {
    text.parse().map_err(|error| failure::name(&error))
}

/// Which images of lists are meant: what the user says, or this machine's platform and then Linux.
pub(super) fn platforms(pattern: Option<&str>) -> Result<Vec<PlatformFilter>, Failure> {
    let parse = |text: &str| {
        PlatformFilter::parse(text).map_err(|error| {
            Failure::new(
                "NT-RELEASE-0101",
                Exit::Usage,
                "cannot use --filter-by-os",
                &chain(&error),
            )
            .remedy("write OS/ARCH, such as linux/amd64")
        })
    };
    if let Some(pattern) = pattern {
        return Ok(vec![parse(pattern)?]);
    }
    let architecture = match env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "powerpc64" => "ppc64le",
        other => other,
    };
    let own = format!("^{}/{architecture}$", env::consts::OS);
    let linux = format!("^linux/{architecture}$");
    Ok(vec![
        parse(&own)?,
        parse(&linux)?,
        PlatformFilter::linux_amd64(),
    ])
}
