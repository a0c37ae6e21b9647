//! `neap release controller` and `neap release payloads`: the processes in a cluster.

use std::{io::Write, path::PathBuf, sync::Arc, time::Duration};

use clap::Args;
use neap_kit::{assembly::Assembly, context::Context, manager::Component};
use neap_release::{
    oci::{
        client::{Options as RegistryOptions, RegistryClient},
        credentials::Credentials,
    },
    payload::{
        controller::{self as payloads, PayloadOptions, SharedQualifiers},
        facts::Timeouts,
        run_keys::{RunKeys, system_entropy},
    },
    stream::{
        config_files::{self, ConfigFiles},
        controller::{Services, components},
        options::{Architecture, Program, StreamOptions},
        prow_config::SharedProwConfig,
        registry_reader::RegistryReader,
        release_reader::CachedReader,
    },
};

use super::{
    ValidateOptions,
    original_flags::{self, ControllerFlags, Kubeconfigs, PayloadFlags},
    validate,
};
use crate::{
    areas::role::{self, RoleArgs},
    cli::duration,
    exit::{Exit, Failure},
    symbols::Symbols,
};

/// The name of the writer that creates the Secret of run tokens.
const KEY_WRITER: &str = "neap-release-keys";

#[derive(Debug, Args)]
pub(super) struct ControllerOptions {
    #[command(flatten)]
    role: RoleArgs,

    /// Namespace of sources, targets and mirrors; may be repeated. The first has the controller's Secrets
    #[arg(
        long,
        value_name = "NAMESPACE",
        required_unless_present = "validate_configs",
        value_delimiter = ','
    )]
    release_namespace: Vec<String>,

    /// Further namespace that releases may be published to; may be repeated
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',')]
    publish_namespace: Vec<String>,

    /// Namespace of the Jobs that assemble releases
    #[arg(
        long,
        value_name = "NAMESPACE",
        required_unless_present = "validate_configs"
    )]
    job_namespace: Option<String>,

    /// Namespace of ProwJobs; by default that of the Jobs
    #[arg(long, value_name = "NAMESPACE")]
    prow_namespace: Option<String>,

    /// File or folder with the job configuration of Prow; may be repeated. It is read again when it changes
    #[arg(
        long,
        visible_alias = "prow-config",
        alias = "supplemental-prow-config-dir",
        value_name = "PATH"
    )]
    job_config: Vec<PathBuf>,

    /// Architecture of the releases: amd64, arm64, ppc64le, s390x or multi
    #[arg(long, value_name = "ARCH", default_value = "amd64")]
    release_architecture: Architecture,

    /// Also run, as informing jobs of Stable releases, the jobs of ImageStreams with this suffix
    #[arg(long, value_name = "SUFFIX", default_value = "")]
    art_suffix: String,

    /// Interchangeable build clusters, separated by commas; may be repeated
    #[arg(long, value_name = "NAMES")]
    cluster_group: Vec<String>,

    /// Keep manifest lists
    #[arg(long)]
    manifest_list_mode: bool,

    /// Mark expired release tags and do not remove them
    #[arg(long)]
    soft_delete_release_tags: bool,

    /// Handle only this source ImageStream; may be repeated
    #[arg(long, value_name = "NAME")]
    only_source: Vec<String>,

    /// Handle only streams that were handed over: OpenShift's release-controller owns all others
    #[arg(long)]
    handed_over_only: bool,

    /// Log what would be written, and write nothing: no Lease and no Secret either
    #[arg(long, visible_alias = "shadow", conflicts_with = "audit_file")]
    dry_run: bool,

    /// Registry of ImageStreams whose status names no public repository
    #[arg(long, value_name = "HOST")]
    registry: Option<String>,

    /// Image of the Jobs
    #[arg(long, value_name = "IMAGE", default_value = "neaptide/neap")]
    tools_image: String,

    /// Use the image of the tag `cli` of each release, with oc, for its Jobs
    #[arg(long)]
    oc: bool,

    /// Also give releases their verdicts, in this process; `neap release payloads` must then not run
    #[arg(long)]
    with_payloads: bool,

    /// File with the global qualifiers, for --with-payloads and --validate-configs
    #[arg(long, value_name = "FILE")]
    release_qualifiers_config_path: Option<PathBuf>,

    /// Check the configurations below this directory and exit, as neap release validate does
    #[arg(long, value_name = "DIR")]
    validate_configs: Option<PathBuf>,

    #[command(flatten)]
    kubeconfigs: Kubeconfigs,

    #[command(flatten)]
    original: ControllerFlags,
}

#[derive(Debug, Args)]
pub(super) struct PayloadsOptions {
    #[command(flatten)]
    role: RoleArgs,

    /// Namespace with the Secret of run tokens: the first release namespace of the release controller
    #[arg(long, value_name = "NAMESPACE")]
    release_namespace: String,

    /// Namespace of the Jobs that assemble releases, as `neap release controller` has it: no Job of another
    /// namespace makes a release. By default, the namespace that each payload names
    #[arg(long, value_name = "NAMESPACE")]
    job_namespace: Option<String>,

    /// File with the global qualifiers. It is read again when it changes
    #[arg(long, value_name = "FILE")]
    release_qualifiers_config_path: Option<PathBuf>,

    /// Write nothing, and report each verdict of another controller that would differ
    #[arg(long, conflicts_with_all = ["audit_file", "original_lock"])]
    shadow: bool,

    /// With --shadow: report a difference only after it has lasted this long
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "15m")]
    shadow_grace: Duration,

    /// Use the Lease of OpenShift's release-payload-controller, in the namespace of --namespace, so that only
    /// one of the two gives verdicts
    #[arg(long)]
    original_lock: bool,

    #[command(flatten)]
    original: PayloadFlags,
}

/// The Lease of the original.
const ORIGINAL_LOCK: &str = "release-payload-controller-lock";

pub(super) fn controller(
    mut options: ControllerOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if let Some(directory) = options.validate_configs {
        let qualifiers = options.release_qualifiers_config_path;
        let options = ValidateOptions {
            directory,
            qualifiers,
        };
        return validate::validate(&options, symbols, out);
    }
    let cluster = &mut options.role.cluster;
    cluster.kubeconfig = options.kubeconfigs.only(cluster.kubeconfig.as_deref())?;
    // Who writes nothing needs no Lease.
    options.role.leader_elect &= !options.dry_run;
    let options = &options;
    crate::allocator::return_what_is_free();
    role::run("neap-release-controller", &options.role, |assembly, _| {
        original_flags::warn(&options.original.given());
        let context = context(assembly);
        let qualifiers = options.release_qualifiers_config_path.clone();
        let files = ConfigFiles {
            jobs: options.job_config.clone(),
            qualifiers: qualifiers.filter(|_| options.with_payloads),
        };
        let prow = files
            .prow()
            .map_err(|error| not_set_up(&error.to_string()))?;
        let prow = SharedProwConfig::new(prow);
        let stream_options = options.stream_options();
        let mut all = streams(&context, stream_options, prow.clone())?;
        let qualifiers = files
            .qualifiers()
            .map_err(|error| not_set_up(&error.to_string()))?;
        let qualifiers = SharedQualifiers::new(qualifiers);
        if options.with_payloads {
            let namespace = options.release_namespace.first();
            let namespace = namespace.map_or("", String::as_str);
            let jobs = options.job_namespace.clone();
            all.extend(verdicts(&context, namespace, jobs, qualifiers.clone())?);
        }
        all.push(config_files::component(
            context.clock,
            files,
            prow,
            qualifiers,
        ));
        Ok(all)
    })
}

impl ControllerOptions {
    fn stream_options(&self) -> StreamOptions {
        let jobs = self.job_namespace.as_deref().unwrap_or_default();
        let prow = self.prow_namespace.as_deref().unwrap_or(jobs);
        let first = self
            .release_namespace
            .first()
            .map(String::as_str)
            .unwrap_or_default();
        let mut options = StreamOptions::new(first, jobs, prow);
        options
            .release_namespaces
            .clone_from(&self.release_namespace);
        options
            .publish_namespaces
            .clone_from(&self.publish_namespace);
        options.architecture = self.release_architecture;
        options.art_suffix.clone_from(&self.art_suffix);
        let groups = self.cluster_group.iter();
        options.cluster_groups = groups
            .map(|group| group.split(',').map(str::to_owned).collect())
            .collect();
        options.manifest_list_mode = self.manifest_list_mode;
        options.soft_delete = self.soft_delete_release_tags;
        options.only_sources.clone_from(&self.only_source);
        options.handed_over_only = self.handed_over_only;
        options.dry_run = self.dry_run;
        options.registry.clone_from(&self.registry);
        options.tools.image = (!self.oc).then(|| self.tools_image.clone());
        options.tools.program = if self.oc { Program::Oc } else { Program::Neap };
        options
    }
}

pub(super) fn payloads(mut options: PayloadsOptions) -> Result<(), Failure> {
    options.role.leader_elect &= !options.shadow;
    let options = &options;
    let lease = if options.original_lock {
        ORIGINAL_LOCK
    } else {
        "neap-release-payloads"
    };
    crate::allocator::return_what_is_free();
    role::run(lease, &options.role, |assembly, _| {
        original_flags::warn(&options.original.given());
        let context = context(assembly);
        let files = ConfigFiles {
            jobs: Vec::new(),
            qualifiers: options.release_qualifiers_config_path.clone(),
        };
        let qualifiers = files
            .qualifiers()
            .map_err(|error| not_set_up(&error.to_string()))?;
        let qualifiers = SharedQualifiers::new(qualifiers);
        let mut all = if options.shadow {
            let payload_options = shadow_options(&context, options, qualifiers.clone());
            let shadow =
                neap_release::shadow::component(&context, payload_options, options.shadow_grace);
            vec![shadow.map_err(|error| not_set_up(&error.to_string()))?]
        } else {
            let jobs = options.job_namespace.clone();
            verdicts(
                &context,
                &options.release_namespace,
                jobs,
                qualifiers.clone(),
            )?
        };
        let prow = SharedProwConfig::default();
        let files = config_files::component(context.clock, files, prow, qualifiers);
        all.push(files);
        Ok(all)
    })
}

/// What shadow mode needs: it creates no keys.
fn shadow_options(
    context: &Context,
    options: &PayloadsOptions,
    qualifiers: SharedQualifiers,
) -> PayloadOptions {
    let writer = context.writer(KEY_WRITER);
    PayloadOptions {
        timeouts: Timeouts::default(),
        run_keys: RunKeys::stand_in(writer, context.clock, &options.release_namespace),
        qualifiers,
        job_namespace: options.job_namespace.clone(),
    }
}

fn context(assembly: &Assembly) -> Context {
    assembly.context().clone()
}

/// The release controller and its garbage collection.
pub(in crate::areas::release) fn streams(
    context: &Context,
    options: StreamOptions,
    prow: SharedProwConfig,
) -> Result<Vec<Component>, Failure> {
    let http = neap_kit::client::Client::builder("release-images", context.clock).build();
    let http = http.map_err(|error| not_set_up(&error.to_string()))?;
    let client = RegistryClient::new(http, Credentials::none(), RegistryOptions::default());
    let first = options
        .release_namespaces
        .first()
        .cloned()
        .unwrap_or_default();
    let writer = context.writer(KEY_WRITER);
    let run_keys = if options.dry_run {
        RunKeys::stand_in(writer, context.clock, &first)
    } else {
        RunKeys::new(writer, context.clock, &first, system_entropy)
    };
    let reader = RegistryReader::new(client, context.client.clone(), context.clock);
    let services = Services {
        options: Arc::new(options),
        prow,
        run_keys,
        reader: CachedReader::new(Arc::new(reader)),
    };
    components(context, services).map_err(|error| not_set_up(&error.to_string()))
}

/// The payload controller, and what wakes it.
pub(in crate::areas::release) fn verdicts(
    context: &Context,
    release_namespace: &str,
    job_namespace: Option<String>,
    qualifiers: SharedQualifiers,
) -> Result<Vec<Component>, Failure> {
    let options = PayloadOptions {
        timeouts: Timeouts::default(),
        run_keys: RunKeys::new(
            context.writer(KEY_WRITER),
            context.clock,
            release_namespace,
            system_entropy,
        ),
        qualifiers,
        job_namespace,
    };
    payloads::components(context, options).map_err(|error| not_set_up(&error.to_string()))
}

pub(in crate::areas::release) fn not_set_up(why: &str) -> Failure {
    let what = "the release controllers cannot be set up";
    Failure::new("NT-RELEASE-0005", Exit::Refused, what, why)
        .remedy("correct what is named; nothing was started")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        options: ControllerOptions,
    }

    fn parsed(arguments: &[&str]) -> Result<ControllerOptions, clap::Error> {
        let arguments = ["neap"].iter().chain(arguments);
        Cli::try_parse_from(arguments).map(|cli| cli.options)
    }

    #[test]
    fn configurations_are_checked_without_namespaces_and_without_a_cluster() {
        assert!(parsed(&[]).is_err(), "a controller needs namespaces");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        let file = folder.path().join("nightly.json");
        let check = || {
            let options = parsed(&["--validate-configs", path]).unwrap();
            let mut out = Vec::new();
            let checked = controller(options, Symbols::choose(true), &mut out);
            (checked.is_ok(), String::from_utf8(out).unwrap())
        };
        std::fs::write(&file, r#"{"name": "a", "to": "release"}"#).unwrap();
        let (is_valid, printed) = check();
        assert!(
            is_valid && printed.contains("1 configuration is valid"),
            "{printed}"
        );
        std::fs::write(&file, r#"{"name": "a", "to": "release", "publsh": {}}"#).unwrap();
        let (is_valid, printed) = check();
        assert!(
            !is_valid && printed.contains("nightly.json: publsh"),
            "{printed}"
        );
    }

    #[test]
    fn arguments_of_the_original_start_a_controller() {
        let options = parsed(&[
            "--release-namespace=ocp",
            "--job-namespace=ci-release",
            "--prow-namespace=ci",
            "--listen=:8080",
            "--release-qualifiers-config-path=/etc/qualifiers.yaml",
            "--non-prow-job-kubeconfig=/etc/k",
            "--prow-job-kubeconfig=/etc/k",
            "--tools-image-stream-tag=:tests",
        ]);
        let options = options.unwrap();
        assert_eq!(options.role.listen.to_string(), "0.0.0.0:8080");
        let only = options.kubeconfigs.only(None).unwrap();
        assert_eq!(only, Some(PathBuf::from("/etc/k")));
        let streams = options.stream_options();
        let namespaces = (streams.job_namespace, streams.prow_namespace);
        assert_eq!(namespaces, ("ci-release".to_owned(), "ci".to_owned()));
    }
}
