//! The programs that payloads carry: in which image, at which path, in which archive.

use std::fmt;

use super::placeholders::Placeholder;

/// A program for one system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tool {
    /// The command: `oc`.
    pub command: &'static str,
    /// `linux`, `mac` or `windows`.
    pub os: &'static str,
    /// The architecture; none for that of the payload.
    pub arch: Option<&'static str>,
    /// The component whose image has it.
    pub component: &'static str,
    /// The file in the image.
    pub path: &'static str,
    /// The name of the archive before the version.
    pub archive: &'static str,
    /// Only by its name, and not with all others.
    pub only_by_name: bool,
    /// Older payloads do not have it.
    pub optional: bool,
}

const fn tool(
    command: &'static str,
    os: &'static str,
    arch: Option<&'static str>,
    component: &'static str,
    path: &'static str,
    archive: &'static str,
) -> Tool {
    Tool {
        command,
        os,
        arch,
        component,
        path,
        archive,
        only_by_name: false,
        optional: false,
    }
}

impl Tool {
    const fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    const fn only_by_name(mut self) -> Self {
        self.only_by_name = true;
        self
    }

    /// The name of the program in its archive.
    pub fn file_name(&self) -> String {
        let name = self.command.trim_end_matches(".rhel8");
        let name = name.trim_end_matches(".rhel9");
        match self.os {
            "windows" => format!("{name}.exe"),
            _ => name.to_owned(),
        }
    }

    /// The name of the archive.
    pub fn archive_name(&self, version: &str) -> String {
        let extension = if self.os == "windows" {
            "zip"
        } else {
            "tar.gz"
        };
        format!("{}-{version}.{extension}", self.archive)
    }

    /// Whether the archive has the program under a second name.
    pub fn second_name(&self) -> Option<&'static str> {
        (self.file_name() == "oc").then_some("kubectl")
    }

    /// Whether it installs clusters.
    pub fn is_installer(&self) -> bool {
        self.command.starts_with("openshift-")
    }

    /// Whether the release is written into it.
    pub fn takes(&self, placeholder: Placeholder) -> bool {
        let is_client = self.command.starts_with("oc");
        self.is_installer() || (is_client && placeholder == Placeholder::Version)
    }

    /// Whether its system runs only signed programs.
    pub fn needs_signature(&self) -> bool {
        (self.os, self.arch) == ("mac", Some("arm64"))
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arch = self.arch.unwrap_or("the payload's architecture");
        write!(f, "{} for {}/{arch}", self.command, self.os)
    }
}

/// All programs.
pub const TOOLS: [Tool; 27] = [
    tool(
        "oc",
        "mac",
        Some("amd64"),
        "cli-artifacts",
        "usr/share/openshift/mac/oc",
        "openshift-client-mac",
    ),
    tool(
        "oc",
        "mac",
        Some("arm64"),
        "cli-artifacts",
        "usr/share/openshift/mac_arm64/oc",
        "openshift-client-mac-arm64",
    )
    .optional(),
    tool(
        "oc",
        "linux",
        None,
        "cli",
        "usr/bin/oc",
        "openshift-client-linux",
    ),
    tool(
        "oc",
        "linux",
        Some("amd64"),
        "cli-artifacts",
        "usr/share/openshift/linux_amd64/oc",
        "openshift-client-linux-amd64",
    )
    .optional(),
    tool(
        "oc",
        "linux",
        Some("arm64"),
        "cli-artifacts",
        "usr/share/openshift/linux_arm64/oc",
        "openshift-client-linux-arm64",
    )
    .optional(),
    tool(
        "oc",
        "linux",
        Some("ppc64le"),
        "cli-artifacts",
        "usr/share/openshift/linux_ppc64le/oc",
        "openshift-client-linux-ppc64le",
    )
    .optional(),
    tool(
        "oc.rhel8",
        "linux",
        Some("amd64"),
        "cli-artifacts",
        "usr/share/openshift/linux_amd64/oc.rhel8",
        "openshift-client-linux-amd64-rhel8",
    )
    .optional(),
    tool(
        "oc.rhel8",
        "linux",
        Some("arm64"),
        "cli-artifacts",
        "usr/share/openshift/linux_arm64/oc.rhel8",
        "openshift-client-linux-arm64-rhel8",
    )
    .optional(),
    tool(
        "oc.rhel8",
        "linux",
        Some("ppc64le"),
        "cli-artifacts",
        "usr/share/openshift/linux_ppc64le/oc.rhel8",
        "openshift-client-linux-ppc64le-rhel8",
    )
    .optional(),
    tool(
        "oc.rhel8",
        "linux",
        Some("s390x"),
        "cli-artifacts",
        "usr/share/openshift/linux_s390x/oc.rhel8",
        "openshift-client-linux-s390x-rhel8",
    )
    .optional(),
    tool(
        "oc.rhel9",
        "linux",
        Some("amd64"),
        "cli-artifacts",
        "usr/share/openshift/linux_amd64/oc.rhel9",
        "openshift-client-linux-amd64-rhel9",
    )
    .optional(),
    tool(
        "oc.rhel9",
        "linux",
        Some("arm64"),
        "cli-artifacts",
        "usr/share/openshift/linux_arm64/oc.rhel9",
        "openshift-client-linux-arm64-rhel9",
    )
    .optional(),
    tool(
        "oc.rhel9",
        "linux",
        Some("ppc64le"),
        "cli-artifacts",
        "usr/share/openshift/linux_ppc64le/oc.rhel9",
        "openshift-client-linux-ppc64le-rhel9",
    )
    .optional(),
    tool(
        "oc.rhel9",
        "linux",
        Some("s390x"),
        "cli-artifacts",
        "usr/share/openshift/linux_s390x/oc.rhel9",
        "openshift-client-linux-s390x-rhel9",
    )
    .optional(),
    tool(
        "oc",
        "windows",
        Some("amd64"),
        "cli-artifacts",
        "usr/share/openshift/windows/oc.exe",
        "openshift-client-windows",
    ),
    tool(
        "openshift-install",
        "mac",
        Some("amd64"),
        "installer-artifacts",
        "usr/share/openshift/mac/openshift-install",
        "openshift-install-mac",
    ),
    tool(
        "openshift-install",
        "mac",
        Some("arm64"),
        "installer-artifacts",
        "usr/share/openshift/mac_arm64/openshift-install",
        "openshift-install-mac-arm64",
    )
    .optional(),
    tool(
        "openshift-install",
        "linux",
        Some("amd64"),
        "installer-artifacts",
        "usr/share/openshift/linux_amd64/openshift-install",
        "openshift-install-linux-amd64",
    )
    .optional(),
    tool(
        "openshift-install",
        "linux",
        Some("arm64"),
        "installer-artifacts",
        "usr/share/openshift/linux_arm64/openshift-install",
        "openshift-install-linux-arm64",
    )
    .optional(),
    tool(
        "openshift-install",
        "linux",
        None,
        "installer",
        "usr/bin/openshift-install",
        "openshift-install-linux",
    ),
    tool(
        "openshift-baremetal-install",
        "linux",
        None,
        "baremetal-installer",
        "usr/bin/openshift-install",
        "openshift-baremetal-install-linux",
    )
    .only_by_name(),
    tool(
        "openshift-install-fips",
        "linux",
        None,
        "baremetal-installer",
        "usr/bin/openshift-install",
        "openshift-install-rhel",
    )
    .only_by_name(),
    tool(
        "ccoctl",
        "linux",
        None,
        "cloud-credential-operator",
        "usr/bin/ccoctl",
        "ccoctl-linux",
    ),
    tool(
        "ccoctl.rhel8",
        "linux",
        None,
        "cloud-credential-operator",
        "usr/bin/ccoctl.rhel8",
        "ccoctl-linux-rhel8",
    )
    .optional(),
    tool(
        "ccoctl.rhel9",
        "linux",
        None,
        "cloud-credential-operator",
        "usr/bin/ccoctl.rhel9",
        "ccoctl-linux-rhel9",
    )
    .optional(),
    // The names that users type on the systems themselves.
    tool(
        "kubectl",
        "linux",
        None,
        "cli",
        "usr/bin/oc",
        "openshift-client-linux",
    )
    .only_by_name(),
    tool(
        "kubectl",
        "mac",
        Some("amd64"),
        "cli-artifacts",
        "usr/share/openshift/mac/oc",
        "openshift-client-mac",
    )
    .only_by_name(),
];

/// Systems that are wanted: an operating system, with or without an architecture, or all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Systems {
    /// Every one.
    All,
    /// One.
    One {
        /// `linux`, `mac` or `windows`.
        os: String,
        /// The architecture.
        arch: String,
    },
}

impl Systems {
    /// Reads `linux`, `mac/arm64` or `*`; without an architecture it is amd64.
    pub fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::All);
        }
        let (os, arch) = text.split_once('/').unwrap_or((text, "amd64"));
        let os = if os == "darwin" || os == "macos" {
            "mac"
        } else {
            os
        };
        let known = ["linux", "mac", "windows"].contains(&os);
        (known && !arch.is_empty()).then(|| Self::One {
            os: os.to_owned(),
            arch: arch.to_owned(),
        })
    }
}

/// The programs that are wanted of a payload for `release_arch`: all, or those of one command.
pub fn select(command: Option<&str>, systems: &Systems, release_arch: &str) -> Vec<Tool> {
    let fits = |tool: &Tool| match systems {
        Systems::All => true,
        Systems::One { os, arch } => tool.os == os && tool.arch.unwrap_or(release_arch) == arch,
    };
    let wanted = TOOLS.into_iter().filter(|tool| match command {
        Some(command) => tool.command == command,
        None => !tool.only_by_name,
    });
    let wanted: Vec<_> = wanted.filter(fits).collect();
    // The payload's own program is the same as the one for its architecture.
    let has_own = |tool: &Tool| {
        wanted
            .iter()
            .any(|own| own.arch.is_none() && own.command == tool.command && own.os == tool.os)
    };
    let is_second = |tool: &Tool| tool.arch == Some(release_arch) && has_own(tool);
    wanted
        .iter()
        .copied()
        .filter(|tool| !is_second(tool))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(command: Option<&str>, systems: &str, arch: &str) -> Vec<String> {
        let systems = Systems::parse(systems).unwrap();
        let tools = select(command, &systems, arch);
        tools.iter().map(|it| it.archive_name("4.99.0")).collect()
    }

    #[test]
    fn the_program_of_the_payload_is_not_there_twice() {
        assert_eq!(
            names(Some("oc"), "linux", "amd64"),
            ["openshift-client-linux-4.99.0.tar.gz"]
        );
        assert_eq!(
            names(Some("oc"), "linux/arm64", "amd64"),
            ["openshift-client-linux-arm64-4.99.0.tar.gz"]
        );
        assert_eq!(
            names(Some("oc"), "windows", "amd64"),
            ["openshift-client-windows-4.99.0.zip"]
        );
        let all = names(None, "*", "amd64");
        assert!(!all.contains(&"openshift-client-linux-amd64-4.99.0.tar.gz".to_owned()));
        assert!(!all.iter().any(|name| name.contains("baremetal")));
        let mut unique = all.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), all.len(), "each archive once");
    }

    #[test]
    fn systems_have_the_names_of_users() {
        assert_eq!(Systems::parse("darwin/arm64"), Systems::parse("mac/arm64"));
        assert_eq!(Systems::parse("linux"), Systems::parse("linux/amd64"));
        assert_eq!(Systems::parse("*"), Some(Systems::All));
        for text in ["", "plan9", "linux/"] {
            assert_eq!(Systems::parse(text), None, "{text}");
        }
    }
}
