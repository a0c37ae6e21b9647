//! `neap release`: commands about payloads as images. They talk to registries, and need no cluster unless they
//! read an ImageStream.

mod assemble;
mod failure;
mod imports;
mod info;
mod mirror;
mod mirrors_and_imports;
mod options;
mod output;
mod programs;
mod progress;
mod registry;
mod signature;
mod sources;

use std::{io::Write, path::PathBuf};

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use jiff::Timestamp;

use self::{
    imports::ImportsOptions,
    options::{
        CleanupOptions, DiffOptions, ExtractOptions, InfoFormat, InfoOptions, MirrorOptions,
        Policy, ReimportOptions, VerifyOptions,
    },
    registry::RegistryOptions,
};
use crate::{
    cli::{ClusterOptions, timestamp},
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

    /// Do not fail if a manifest references an image that is not in the input
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

    /// Push a manifest list with one image per platform of the base
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

    /// Folder in which manifests and small blobs of images by digest are kept. What is there is not asked for
    /// again, not even whether the registry still has it
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,

    /// Push nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    registry: RegistryOptions,

    #[command(flatten)]
    cluster: ClusterOptions,
}
