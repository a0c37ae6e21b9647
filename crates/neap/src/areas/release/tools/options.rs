//! The flags of the commands that read payloads, copy them and clean up.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};

use super::registry::RegistryOptions;
use crate::cli::{ClusterOptions, duration};

const EXTRACT_EXAMPLES: &str = "\
Examples:
  neap release extract reg.example/ocp/release:4.99.0 --to payload            all files
  neap release extract reg.example/ocp/release:4.99.0 --command oc --to bin   one program
  neap release extract reg.example/ocp/release:4.99.0 --tools --command-os '*' --to tools";

/// What `neap release extract --git` does
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in super::super) enum GitOutput {
    /// Only verify the commits
    Commit,
}

/// Formats of `neap release info`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in super::super) enum InfoFormat {
    /// Human-readable text
    Text,
    /// JSON
    Json,
    /// Names of components
    Name,
    /// Digests of images
    Digest,
    /// Pull specs of images
    Pullspec,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("show").args(["commits", "commit_urls", "pullspecs", "contents", "size", "image_for", "changelog", "bugs"])))]
pub(in super::super) struct InfoOptions {
    /// Payload; with a second one, what is different
    #[arg(required = true, num_args = 1..=2, value_name = "PULLSPEC")]
    pub(super) images: Vec<String>,

    /// Show the source and commit of each image
    #[arg(long)]
    pub(super) commits: bool,

    /// Show the address of each commit
    #[arg(long)]
    pub(super) commit_urls: bool,

    /// Show the pull spec of each image
    #[arg(long)]
    pub(super) pullspecs: bool,

    /// Print all manifests
    #[arg(long)]
    pub(super) contents: bool,

    /// Show the size of each image
    #[arg(long)]
    pub(super) size: bool,

    /// Show the pull requests between two payloads. Their sources are in this folder, or are cloned into it
    #[arg(long, value_name = "DIR")]
    pub(super) changelog: Option<PathBuf>,

    /// Show the bugs that are fixed between two payloads; the folder is that of --changelog
    #[arg(long, value_name = "DIR", conflicts_with = "changelog")]
    pub(super) bugs: Option<PathBuf>,

    /// Do not ask Jira and Bugzilla about the bugs
    #[arg(long, requires = "bugs")]
    pub(super) skip_bug_check: bool,

    /// Print the pull spec of one component
    #[arg(long, value_name = "NAME")]
    pub(super) image_for: Option<String>,

    /// Read the images of the payload, too
    #[arg(long)]
    pub(super) include_images: bool,

    /// Which image of a list, as OS/ARCH
    #[arg(long, value_name = "PATTERN")]
    pub(super) filter_by_os: Option<String>,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = InfoFormat::Text)]
    pub(super) output: InfoFormat,

    #[command(flatten)]
    pub(super) registry: RegistryOptions,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("selection").args(["file", "credentials_requests", "tools", "command", "git"])), after_help = EXTRACT_EXAMPLES)]
pub(in super::super) struct ExtractOptions {
    /// Payload
    #[arg(value_name = "PULLSPEC")]
    pub(super) image: String,

    /// Folder into which the files are written
    #[arg(long, value_name = "DIR", default_value = ".", conflicts_with = "file")]
    pub(super) to: PathBuf,

    /// Print one file
    #[arg(long, value_name = "NAME")]
    pub(super) file: Option<String>,

    /// Archives of the clients and installers, with release.txt and sha256sum.txt
    #[arg(long)]
    pub(super) tools: bool,

    /// One program, such as oc or openshift-install
    #[arg(long, value_name = "NAME")]
    pub(super) command: Option<String>,

    /// System of the programs: linux, mac, windows, OS/ARCH, or * for all; by default that of this machine
    #[arg(long, value_name = "OS")]
    pub(super) command_os: Option<String>,

    /// Check out the sources of all images in this folder, each as HOST/PATH@COMMIT
    #[arg(long, value_name = "DIR", conflicts_with = "to")]
    pub(super) git: Option<PathBuf>,

    /// With --git: commit only verifies that the sources have the commits of the images
    #[arg(short, long, value_enum, value_name = "FORMAT", requires = "git")]
    pub(super) output: Option<GitOutput>,

    /// Only requests for credentials
    #[arg(long)]
    pub(super) credentials_requests: bool,

    /// Only requests for this cloud
    #[arg(long, value_name = "NAME", requires = "credentials_requests")]
    pub(super) cloud: Option<String>,

    /// Which image of a list, as OS/ARCH
    #[arg(long, value_name = "PATTERN")]
    pub(super) filter_by_os: Option<String>,

    #[command(flatten)]
    pub(super) registry: RegistryOptions,
}

#[derive(Debug, Args)]
pub(in super::super) struct DiffOptions {
    /// First payload
    #[arg(value_name = "FROM")]
    pub(super) from: String,

    /// Second payload
    #[arg(value_name = "TO")]
    pub(super) to: String,

    /// Show where the changes of sources are
    #[arg(long)]
    pub(super) commits: bool,

    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,

    #[command(flatten)]
    pub(super) registry: RegistryOptions,
}

/// Which policy `neap release mirror` prints
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in super::super) enum Policy {
    /// An ImageContentSourcePolicy
    Icsp,
    /// An ImageDigestMirrorSet
    Idms,
    /// None
    None,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("target").args(["to", "to_dir", "to_image_stream"]).required(true).multiple(true)))]
pub(in super::super) struct MirrorOptions {
    /// Payload; with --from-dir its REPOSITORY:TAG there, by default the only payload
    #[arg(value_name = "PULLSPEC", required_unless_present = "from_dir")]
    pub(super) image: Option<String>,

    /// Repository, or a template with ${version} and ${component}
    #[arg(long, value_name = "REPOSITORY", conflicts_with = "to_image_stream")]
    pub(super) to: Option<String>,

    /// Folder into which the images are copied; --to names the repository there [default: openshift/release]
    #[arg(long, value_name = "DIR", conflicts_with_all = ["to_image_stream", "from_dir"])]
    pub(super) to_dir: Option<PathBuf>,

    /// Folder from which the images are copied, written by --to-dir
    #[arg(long, value_name = "DIR", conflicts_with = "to_image_stream")]
    pub(super) from_dir: Option<PathBuf>,

    /// ImageStream whose tags become the images, and the tag release the payload
    #[arg(long, value_name = "NAME", conflicts_with_all = ["to_release_image", "skip_release_image"])]
    pub(super) to_image_stream: Option<String>,

    /// Namespace of the ImageStream; by default that of the context
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(super) namespace: Option<String>,

    /// Where the payload itself goes
    #[arg(long, value_name = "PULLSPEC")]
    pub(super) to_release_image: Option<String>,

    /// Do not copy the payload itself
    #[arg(long)]
    pub(super) skip_release_image: bool,

    /// Preserve manifest lists in names (suffix -multi) and in imported tags
    #[arg(long)]
    pub(super) keep_manifest_list: bool,

    /// Only print what would be copied where
    #[arg(long)]
    pub(super) dry_run: bool,

    /// Policy to print for clusters that use the mirror
    #[arg(long, value_enum, default_value_t = Policy::Idms, value_name = "KIND")]
    pub(super) print_mirror_instructions: Policy,

    #[command(flatten)]
    pub(super) registry: RegistryOptions,

    #[command(flatten)]
    pub(super) cluster: ClusterOptions,
}

#[derive(Debug, Args)]
pub(in super::super) struct VerifyOptions {
    /// Payload
    #[arg(value_name = "PULLSPEC")]
    pub(super) image: String,

    /// Which images of lists, as OS/ARCH
    #[arg(long, value_name = "PATTERN")]
    pub(super) filter_by_os: Option<String>,

    /// File with the ConfigMap of the keys and stores that are trusted; by default the one in the payload
    #[arg(long, value_name = "FILE")]
    pub(super) verification_config: Option<PathBuf>,

    /// Fail if the payload is not signed. Implied by --verification-config
    #[arg(long)]
    pub(super) require_signature: bool,

    #[command(flatten)]
    pub(super) registry: RegistryOptions,
}

#[derive(Debug, Args)]
pub(in super::super) struct ReimportOptions {
    /// Namespaces of the streams
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',', required = true)]
    pub(super) namespaces: Vec<String>,

    /// Only print what would be asked for
    #[arg(long)]
    pub(super) dry_run: bool,

    /// Run one pass and exit
    #[arg(long)]
    pub(super) once: bool,

    /// The time between two passes, and the first wait of a tag that keeps failing
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10m")]
    pub(super) interval: std::time::Duration,

    /// Requests in one pass
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    pub(super) limit: usize,

    #[command(flatten)]
    pub(super) cluster: ClusterOptions,
}

#[derive(Debug, Args)]
pub(in super::super) struct CleanupOptions {
    /// Namespaces of the streams
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',', required = true)]
    pub(super) namespaces: Vec<String>,

    /// Namespace of the Secret with the credentials of the mirrors
    #[arg(long, value_name = "NAMESPACE", default_value = "ci-release")]
    pub(super) credentials_namespace: String,

    /// Secret with the credentials of the mirrors
    #[arg(
        long,
        value_name = "NAME",
        default_value = "release-controller-quay-mirror-secret"
    )]
    pub(super) credentials_secret: String,

    /// Keep images that are younger
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "720h")]
    pub(super) minimum_age: std::time::Duration,

    /// The time between two passes
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "24h")]
    pub(super) interval: std::time::Duration,

    /// Deletions that one pass tries
    #[arg(long, value_name = "NUMBER", default_value_t = 200)]
    pub(super) limit: usize,

    /// Images that one pass looks at
    #[arg(long, value_name = "NUMBER", default_value_t = 2000)]
    pub(super) look_limit: usize,

    /// Only print what would be deleted
    #[arg(long)]
    pub(super) dry_run: bool,

    /// Run one pass and exit
    #[arg(long)]
    pub(super) once: bool,

    #[command(flatten)]
    pub(super) registry: RegistryOptions,

    #[command(flatten)]
    pub(super) cluster: ClusterOptions,
}
