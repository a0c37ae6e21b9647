//! `neap release`: commands about payloads as images. They talk to registries, and need no cluster unless they
//! read an ImageStream.

mod assemble;
mod failure;
mod imports;
mod info;
mod mirror;
mod mirrors_and_imports;
mod output;
mod progress;
mod registry;
mod signature;

use std::{io::Write, path::PathBuf};

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use jiff::Timestamp;

use self::{imports::ImportsOptions, registry::RegistryOptions};
use crate::{
    cli::{ClusterOptions, duration, timestamp},
    exit::Failure,
    inspect::block_on,
};

const ASSEMBLE_EXAMPLES: &str = "\
Examples:
  neap release assemble --from-image-stream 4.99 -n ocp --name 4.99.0-ci.7 --to-image reg.example/ocp/release
  neap release assemble --from-release reg.example/ocp/release:4.99.0 cli=reg.example/me/cli:mine \\
      --to-image reg.example/me/release:test
  neap release assemble --from-image-stream-file stream.yaml --reference-mode source --to-dir ./payload

Prints the digest, the name and the time of creation. The same images give the same digest: unless
--created says otherwise, a payload is as old as the newest image in it. The tag is written last.";

const INFO_EXAMPLES: &str = "\
Examples:
  neap release info reg.example/ocp/release:4.99.0              what is in a payload
  neap release info reg.example/ocp/release:4.99.0 --commits    the sources of its images
  neap release info reg.example/ocp/release:4.99.0 -o json      for programs
  neap release info FROM TO                                     what is different, as neap release diff";

const MIRROR_EXAMPLES: &str = "\
Examples:
  neap release mirror reg.example/ocp/release:4.99.0 --to mirror.example/ocp/release
  neap release mirror reg.example/ocp/release:4.99.0 --to 'mirror.example/ocp/images:${version}-${component}'
  neap release mirror reg.example/ocp/release:4.99.0 --to-dir /media/disk    where no registry is reached
  neap release mirror --from-dir /media/disk --to mirror.example/ocp/release
  neap release mirror reg.example/ocp/release:4.99.0 --to-image-stream 4.99 -n ocp

Images are copied by digest and not changed. The payload itself is copied last, when all its images are
there; a mirror that breaks off is continued by the same command.";

/// The commands about payloads as images.
#[derive(Debug, Subcommand)]
pub(super) enum ToolCommand {
    /// Make a payload from images, and push it
    #[command(after_help = ASSEMBLE_EXAMPLES)]
    Assemble(Box<AssembleOptions>),

    /// Show what is in a payload
    #[command(after_help = INFO_EXAMPLES)]
    Info(InfoOptions),

    /// Take the files out of a payload
    Extract(ExtractOptions),

    /// Show what is different between two payloads
    Diff(DiffOptions),

    /// Copy a payload and all its images to another repository
    #[command(after_help = MIRROR_EXAMPLES)]
    Mirror(Box<MirrorOptions>),

    /// Read a payload and all its images, and compare each with its digest
    Verify(VerifyOptions),

    /// Run the controller that imports the tags of ImageStreams where the API server does not
    Imports(Box<ImportsOptions>),

    /// Ask again for imports that failed, for all streams that releases are made from
    Reimport(ReimportOptions),

    /// Delete release images from mirrors once no stream has them any more
    MirrorCleanup(CleanupOptions),
}

impl ToolCommand {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        match self {
            Self::Assemble(options) => block_on(assemble::run(&options, out)),
            Self::Info(options) => block_on(info::info(&options, out)),
            Self::Extract(options) => block_on(info::extract(&options, out)),
            Self::Diff(options) => block_on(info::diff(&options, out)),
            Self::Mirror(options) => block_on(mirror::run(&options, out)),
            Self::Verify(options) => block_on(info::verify(&options, out)),
            Self::Imports(options) => imports::run(&options),
            Self::Reimport(options) => block_on(mirrors_and_imports::reimport(&options, out)),
            Self::MirrorCleanup(options) => block_on(mirrors_and_imports::clean_up(&options, out)),
        }
    }

    /// The service name in logs, for commands that a cluster runs.
    pub(super) fn role(&self) -> Option<&'static str> {
        match self {
            Self::Imports(_) => Some(imports::ROLE),
            Self::Reimport(options) if !options.once => Some("neap-release-reimport"),
            Self::MirrorCleanup(options) if !options.once => Some("neap-release-mirror-cleanup"),
            _ => None,
        }
    }
}

/// Which location of an image a payload names
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Mode {
    /// The public repository of the stream
    Public,
    /// Where the image came from
    Source,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("input").args(["from_image_stream", "from_image_stream_file", "from_release", "from_dir"])))]
pub(super) struct AssembleOptions {
    /// Images in place of others, or in addition
    #[arg(value_name = "COMPONENT=PULLSPEC")]
    mappings: Vec<String>,

    /// ImageStream with the images
    #[arg(long, value_name = "NAME")]
    from_image_stream: Option<String>,

    /// File with an ImageStream, as YAML or JSON; - is standard input
    #[arg(long, short = 'f', value_name = "FILE")]
    from_image_stream_file: Option<PathBuf>,

    /// Payload with the images
    #[arg(long, value_name = "PULLSPEC")]
    from_release: Option<String>,

    /// Folder with the manifests of each component in a folder of its name, and with image-references
    #[arg(long, value_name = "DIR")]
    from_dir: Option<PathBuf>,

    /// Namespace of the ImageStream; by default that of the context
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,

    /// Which location of an image the payload names
    #[arg(long, value_enum, default_value_t = Mode::Public, value_name = "MODE")]
    reference_mode: Mode,

    /// File with COMPONENT=PULLSPEC per line
    #[arg(long, value_name = "FILE")]
    mapping_file: Vec<PathBuf>,

    /// Name of the release, a semantic version; by default made from its time
    #[arg(long, value_name = "VERSION")]
    name: Option<String>,

    /// Versions that may be upgraded to it
    #[arg(long, value_name = "VERSION", value_delimiter = ',')]
    previous: Option<Vec<String>>,

    /// Versions that it may be upgraded to
    #[arg(long, value_name = "VERSION", value_delimiter = ',')]
    next: Option<Vec<String>>,

    /// JSON object with more about the release
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,

    /// When it was created; by default when the newest of its images was
    #[arg(long, value_name = "TIME", value_parser = timestamp)]
    created: Option<Timestamp>,

    /// Components that are left out
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    exclude: Vec<String>,

    /// Components that are kept although no manifest names them
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    include: Vec<String>,

    /// Leave images alone that manifests name and the input does not have
    #[arg(long)]
    allow_missing_images: bool,

    /// Do not check manifests
    #[arg(long)]
    skip_manifest_check: bool,

    /// Component whose image the payload is based on; empty for none
    #[arg(long, value_name = "NAME", default_value = "cluster-version-operator")]
    to_image_base_tag: String,

    /// Image that the payload is based on
    #[arg(long, value_name = "PULLSPEC")]
    to_image_base: Option<String>,

    /// Keep a list of manifests: one image for each platform of the base
    #[arg(long)]
    keep_manifest_list: bool,

    /// Where the payload is pushed; without a tag, under its name
    #[arg(long, value_name = "PULLSPEC")]
    to_image: Option<String>,

    /// Folder into which its files are written
    #[arg(long, value_name = "DIR")]
    to_dir: Option<PathBuf>,

    /// File into which its layer is written
    #[arg(long, value_name = "FILE")]
    to_file: Option<PathBuf>,

    /// Push nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    registry: RegistryOptions,

    #[command(flatten)]
    cluster: ClusterOptions,
}

/// Formats of `neap release info`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum InfoFormat {
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
#[command(group(ArgGroup::new("show").args(["commits", "commit_urls", "pullspecs", "contents", "size", "image_for"])))]
pub(super) struct InfoOptions {
    /// Payload; with a second one, what is different
    #[arg(required = true, num_args = 1..=2, value_name = "PULLSPEC")]
    images: Vec<String>,

    /// Show the source and commit of each image
    #[arg(long)]
    commits: bool,

    /// Show the address of each commit
    #[arg(long)]
    commit_urls: bool,

    /// Show the pull spec of each image
    #[arg(long)]
    pullspecs: bool,

    /// Print all manifests
    #[arg(long)]
    contents: bool,

    /// Show the size of each image
    #[arg(long)]
    size: bool,

    /// Print the pull spec of one component
    #[arg(long, value_name = "NAME")]
    image_for: Option<String>,

    /// Read the images of the payload, too
    #[arg(long)]
    include_images: bool,

    /// Which image of a list, as OS/ARCH
    #[arg(long, value_name = "PATTERN")]
    filter_by_os: Option<String>,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = InfoFormat::Text)]
    output: InfoFormat,

    #[command(flatten)]
    registry: RegistryOptions,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("selection").args(["file", "credentials_requests"])))]
pub(super) struct ExtractOptions {
    /// Payload
    #[arg(value_name = "PULLSPEC")]
    image: String,

    /// Folder into which the files are written
    #[arg(long, value_name = "DIR", default_value = ".", conflicts_with = "file")]
    to: PathBuf,

    /// Print one file
    #[arg(long, value_name = "NAME")]
    file: Option<String>,

    /// Only requests for credentials
    #[arg(long)]
    credentials_requests: bool,

    /// Only requests for this cloud
    #[arg(long, value_name = "NAME", requires = "credentials_requests")]
    cloud: Option<String>,

    /// Which image of a list, as OS/ARCH
    #[arg(long, value_name = "PATTERN")]
    filter_by_os: Option<String>,

    #[command(flatten)]
    registry: RegistryOptions,
}

#[derive(Debug, Args)]
pub(super) struct DiffOptions {
    /// First payload
    #[arg(value_name = "FROM")]
    from: String,

    /// Second payload
    #[arg(value_name = "TO")]
    to: String,

    /// Show where the changes of sources are
    #[arg(long)]
    commits: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    registry: RegistryOptions,
}

/// Which policy `neap release mirror` prints
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Policy {
    /// An ImageContentSourcePolicy
    Icsp,
    /// An ImageDigestMirrorSet
    Idms,
    /// None
    None,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("target").args(["to", "to_dir", "to_image_stream"]).required(true).multiple(true)))]
pub(super) struct MirrorOptions {
    /// Payload; with --from-dir its REPOSITORY:TAG there, by default the only payload
    #[arg(value_name = "PULLSPEC", required_unless_present = "from_dir")]
    image: Option<String>,

    /// Repository, or a template with ${version} and ${component}
    #[arg(long, value_name = "REPOSITORY", conflicts_with = "to_image_stream")]
    to: Option<String>,

    /// Folder into which the images are copied; --to names the repository there [default: openshift/release]
    #[arg(long, value_name = "DIR", conflicts_with_all = ["to_image_stream", "from_dir"])]
    to_dir: Option<PathBuf>,

    /// Folder from which the images are copied, written by --to-dir
    #[arg(long, value_name = "DIR", conflicts_with = "to_image_stream")]
    from_dir: Option<PathBuf>,

    /// ImageStream whose tags become the images, and the tag release the payload
    #[arg(long, value_name = "NAME", conflicts_with_all = ["to_release_image", "skip_release_image"])]
    to_image_stream: Option<String>,

    /// Namespace of the ImageStream; by default that of the context
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,

    /// Where the payload itself goes
    #[arg(long, value_name = "PULLSPEC")]
    to_release_image: Option<String>,

    /// Do not copy the payload itself
    #[arg(long)]
    skip_release_image: bool,

    /// Name lists of manifests as such
    #[arg(long)]
    keep_manifest_list: bool,

    /// Only print what would be copied where
    #[arg(long)]
    dry_run: bool,

    /// Policy to print for clusters that use the mirror
    #[arg(long, value_enum, default_value_t = Policy::Idms, value_name = "KIND")]
    print_mirror_instructions: Policy,

    #[command(flatten)]
    registry: RegistryOptions,

    #[command(flatten)]
    cluster: ClusterOptions,
}

#[derive(Debug, Args)]
pub(super) struct VerifyOptions {
    /// Payload
    #[arg(value_name = "PULLSPEC")]
    image: String,

    /// Which images of lists, as OS/ARCH
    #[arg(long, value_name = "PATTERN")]
    filter_by_os: Option<String>,

    /// File with the ConfigMap of the keys and stores that are trusted; by default the one in the payload
    #[arg(long, value_name = "FILE")]
    verification_config: Option<PathBuf>,

    /// Fail if the payload is not signed. Implied by --verification-config
    #[arg(long)]
    require_signature: bool,

    #[command(flatten)]
    registry: RegistryOptions,
}

#[derive(Debug, Args)]
pub(super) struct ReimportOptions {
    /// Namespaces of the streams
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',', required = true)]
    namespaces: Vec<String>,

    /// Only print what would be asked for
    #[arg(long)]
    dry_run: bool,

    /// One pass, and not one every interval
    #[arg(long)]
    once: bool,

    /// The time between two passes
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10m")]
    interval: std::time::Duration,

    /// Requests in one pass
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    limit: usize,

    #[command(flatten)]
    cluster: ClusterOptions,
}

#[derive(Debug, Args)]
pub(super) struct CleanupOptions {
    /// Namespaces of the streams
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',', required = true)]
    namespaces: Vec<String>,

    /// Namespace of the Secret with the credentials of the mirrors
    #[arg(long, value_name = "NAMESPACE", default_value = "ci-release")]
    credentials_namespace: String,

    /// Secret with the credentials of the mirrors
    #[arg(
        long,
        value_name = "NAME",
        default_value = "release-controller-quay-mirror-secret"
    )]
    credentials_secret: String,

    /// Keep images that are younger
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "720h")]
    minimum_age: std::time::Duration,

    /// The time between two passes
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "24h")]
    interval: std::time::Duration,

    /// Deletions in one pass
    #[arg(long, value_name = "NUMBER", default_value_t = 200)]
    limit: usize,

    /// Only print what would be deleted
    #[arg(long)]
    dry_run: bool,

    /// One pass, and not one every interval
    #[arg(long)]
    once: bool,

    #[command(flatten)]
    registry: RegistryOptions,

    #[command(flatten)]
    cluster: ClusterOptions,
}
