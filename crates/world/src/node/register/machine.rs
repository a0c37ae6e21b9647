//! The machine that the node runs on.

use std::{fs, path::Path, thread};

use nix::sys::{statvfs::statvfs, utsname::uname};

/// The properties of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The number of usable processors.
    pub cores: usize,
    /// Its memory in bytes.
    pub memory: u64,
    /// The size of the file system of the node's folder in bytes.
    pub disk: u64,
    /// Its architecture, as a Go `GOARCH`.
    pub architecture: String,
    /// The release of its kernel.
    pub kernel: String,
    /// The name of its operating system.
    pub system: String,
    /// Its machine id.
    pub id: String,
    /// Its boot id.
    pub boot: String,
    /// The Kubernetes version that the node reports.
    pub version: String,
}

impl Machine {
    /// This machine; unknown properties are empty.
    pub fn this(folder: &Path, version: &str) -> Self {
        let text = |path: &str| {
            fs::read_to_string(path)
                .unwrap_or_default()
                .trim()
                .to_owned()
        };
        let memory = text("/proc/meminfo");
        let kilobytes = memory
            .split_whitespace()
            .nth(1)
            .and_then(|total| total.parse().ok());
        let disk = statvfs(folder).map(|disk| disk.blocks() * disk.fragment_size());
        let system = text("/etc/os-release");
        let pretty = system
            .lines()
            .find_map(|line| line.strip_prefix("PRETTY_NAME="));
        let kernel = uname().map(|names| names.release().to_string_lossy().into_owned());
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        Self {
            cores: thread::available_parallelism().map_or(1, Into::into),
            memory: kilobytes.unwrap_or(0_u64) * 1024,
            disk: disk.unwrap_or(0),
            architecture: architecture.to_owned(),
            kernel: kernel.unwrap_or_default(),
            system: pretty.unwrap_or_default().trim_matches('"').to_owned(),
            id: text("/etc/machine-id"),
            boot: text("/proc/sys/kernel/random/boot_id"),
            version: version.to_owned(),
        }
    }
}
