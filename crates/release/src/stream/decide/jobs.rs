//! The Jobs that assemble, copy and remove releases.
//!
//! Our own tools get their arguments one by one. The tools of the original need a shell that prepares their
//! home; their arguments are arguments of that shell and never part of its script.

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::Job;
use serde_json::{Value, json};

use super::mirror::has_registry;
use crate::{
    api::annotations,
    config::ReleaseConfig,
    image_stream::api::{DOCKER_IMAGE, ImageStream},
    names,
    stream::{
        facts::{Facts, Release, public_repository},
        options::Program,
    },
};

/// Prepares the home of `oc` and runs it with the arguments of the script.
const OC: &str = "set -euo pipefail
mkdir -p \"$HOME\" \"$XDG_RUNTIME_DIR\"
mkdir -p \"$HOME/.docker\"
if [ -d /tmp/pull-secret ]; then cp -Lf /tmp/pull-secret/* \"$HOME/.docker/\"; fi
oc registry login
exec oc \"$@\"";
/// The same for a release whose images are only referred to: `oc` reads a copy of the mirror without status.
const OC_REFERENCE: &str = "set -euo pipefail
mkdir -p \"$HOME\" \"$XDG_RUNTIME_DIR\"
mkdir -p \"$HOME/.docker\"
if [ -d /tmp/pull-secret ]; then cp -Lf /tmp/pull-secret/* \"$HOME/.docker/\"; fi
oc registry login
oc get imagestream \"$1\" --namespace=\"$2\" -o yaml | awk '/^status:/{exit} {print}' > /tmp/mirror.yaml
[ -s /tmp/mirror.yaml ]
exec oc adm release new --name=\"$3\" --from-image-stream-file=/tmp/mirror.yaml --to-image=\"$4\" \
--reference-mode=\"$5\" --keep-manifest-list=\"$6\"";

/// The user of our own program in Jobs; no image needs to know it.
const USER: i64 = 65_532;

/// A Job cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum JobProblem {
    /// There is no repository for the release image.
    #[error("the target ImageStream has no public repository, and no registry is configured")]
    NoRepository,
    /// There is no image to run.
    #[error("the mirror has no image for the tag cli, which runs the Job; set overrideCLIImage")]
    NoImage,
    /// The tag of a Stable release has no image.
    #[error("the tag has no imported image")]
    NotImported,
    /// The configuration of references is missing.
    #[error("referenceRelease.pushRepository is not set")]
    NoPushRepository,
}

/// What a Job runs, with either of the programs.
struct Commands {
    /// Arguments of `neap`.
    neap: Vec<String>,
    /// The script for `oc`, and its arguments.
    oc: (&'static str, Vec<String>),
    /// The Secret with credentials of registries.
    secret: String,
}

/// Whether manifest lists are kept.
fn keeps_lists(facts: &Facts, config: &ReleaseConfig) -> bool {
    facts.options.manifest_list_mode && !config.disable_manifest_list_mode
}

/// The Job that assembles a release of an Integration stream.
pub(super) fn creation_job(
    facts: &Facts,
    config: &ReleaseConfig,
    release: &Release<'_>,
    mirror: &ImageStream,
) -> Result<Job, JobProblem> {
    let tag = release.name();
    let mirror_name = mirror.metadata.name.clone().unwrap_or_default();
    let keep = keeps_lists(facts, config);
    let mut arguments = vec![
        format!("--name={tag}"),
        format!("--from-image-stream={mirror_name}"),
        format!("--namespace={}", facts.namespace()),
    ];
    let commands = if release.tag.reference {
        let reference = config
            .reference_release
            .as_ref()
            .ok_or(JobProblem::NoPushRepository)?;
        if reference.push_repository.is_empty() {
            return Err(JobProblem::NoPushRepository);
        }
        let to = format!(
            "{}:{}",
            reference.push_repository,
            names::reference_tag(tag)
        );
        arguments.push(format!("--to-image={to}"));
        let own = [arguments, own_modes(&config.reference_mode, keep)].concat();
        let positional = [
            mirror_name,
            facts.namespace().to_owned(),
            tag.to_owned(),
            to,
            config.reference_mode.clone(),
            keep.to_string(),
        ];
        let secret = if reference.secret_name.is_empty() {
            &config.pull_secret_name
        } else {
            &reference.secret_name
        };
        Commands {
            neap: neap(&["assemble"], own),
            oc: (OC_REFERENCE, positional.into()),
            secret: secret.clone(),
        }
    } else {
        let repository = target_repository(facts)?;
        arguments.push(format!("--to-image={repository}:{tag}"));
        let mode = reference_mode(facts, config);
        let own = [arguments.clone(), own_modes(mode, keep)].concat();
        arguments.extend(modes(mode, keep));
        Commands {
            neap: neap(&["assemble"], own),
            oc: (OC, oc(&["adm", "release", "new"], arguments)),
            secret: config.pull_secret_name.clone(),
        }
    };
    job(facts, config, tag, tag, Some(mirror), &commands).map(|job| signed(facts, job))
}

/// The Job of a Stable release: it copies the images into the mirror, and assembles the release again if the
/// image has another name than the tag. Where the target has no registry that serves its tags, the release is
/// copied to the configured one.
pub(super) fn stable_job(
    facts: &Facts,
    config: &ReleaseConfig,
    release: &Release<'_>,
    mirror: &ImageStream,
    image: Option<&str>,
    rewrite: bool,
) -> Result<Job, JobProblem> {
    let tag = release.name();
    let keep = keeps_lists(facts, config);
    let image = image.ok_or(JobProblem::NotImported)?;
    let fill = filling(facts, config, image, mirror, keep);
    let uses_own_tools = facts.options.tools.program == Program::Neap;
    let copies = uses_own_tools && !has_registry(&facts.source);
    let main = if rewrite {
        rewriting(facts, config, release, mirror, image)?
    } else if copies {
        let repository = target_repository(facts)?;
        let own = own_copy(image, &repository, &format!("{repository}:{tag}"));
        let listed = keep.then(|| "--keep-manifest-list".to_owned());
        Commands {
            neap: neap(&["mirror"], own.into_iter().chain(listed).collect()),
            oc: (OC, Vec::new()),
            secret: config.pull_secret_name.clone(),
        }
    } else {
        return job(facts, config, tag, tag, Some(mirror), &fill).map(|job| signed(facts, job));
    };
    let mut job = job(facts, config, tag, tag, Some(mirror), &main)?;
    let image = job_image(facts, config, tag, Some(mirror))?;
    let container = container(facts, "mirror", &image, &fill);
    let pod = job
        .spec
        .as_mut()
        .and_then(|spec| spec.template.spec.as_mut());
    if let (Some(pod), Ok(container)) = (pod, serde_json::from_value(container)) {
        pod.init_containers = Some(vec![container]);
    }
    Ok(signed(facts, job))
}

/// Fills the mirror of a Stable release with its images.
fn filling(
    facts: &Facts,
    config: &ReleaseConfig,
    image: &str,
    mirror: &ImageStream,
    keep: bool,
) -> Commands {
    let mirror_name = mirror.metadata.name.as_deref().unwrap_or_default();
    let arguments = vec![
        image.to_owned(),
        format!("--to-image-stream={mirror_name}"),
        format!("--namespace={}", facts.namespace()),
    ];
    let own = keep.then(|| "--keep-manifest-list".to_owned());
    let oc_arguments = arguments
        .iter()
        .cloned()
        .chain([format!("--keep-manifest-list={keep}")]);
    Commands {
        oc: (
            OC,
            oc(&["adm", "release", "mirror"], oc_arguments.collect()),
        ),
        neap: neap(&["mirror"], arguments.into_iter().chain(own).collect()),
        secret: config.pull_secret_name.clone(),
    }
}

/// Assembles a Stable release again under the name of its tag.
fn rewriting(
    facts: &Facts,
    config: &ReleaseConfig,
    release: &Release<'_>,
    mirror: &ImageStream,
    image: &str,
) -> Result<Commands, JobProblem> {
    let tag = release.name();
    let keep = keeps_lists(facts, config);
    let repository = target_repository(facts)?;
    let mut arguments = vec![
        format!("--name={tag}"),
        format!("--namespace={}", facts.namespace()),
    ];
    if release.annotation(annotations::MIRROR_IMAGES).is_some() {
        let mirror_name = mirror.metadata.name.as_deref().unwrap_or_default();
        arguments.push(format!("--from-image-stream={mirror_name}"));
    } else {
        arguments.push(format!("--from-release={image}"));
    }
    arguments.push(format!("--to-image={repository}:{tag}"));
    arguments.push("--metadata={}".to_owned());
    let mode = reference_mode(facts, config);
    let own = [arguments.clone(), own_modes(mode, keep)].concat();
    arguments.extend(modes(mode, keep));
    Ok(Commands {
        neap: neap(&["assemble"], own),
        oc: (OC, oc(&["adm", "release", "new"], arguments)),
        secret: config.pull_secret_name.clone(),
    })
}

/// The Job that copies a release to the alternate repository.
pub(super) fn alternate_mirror_job(
    facts: &Facts,
    config: &ReleaseConfig,
    tag: &str,
    pull_spec: &str,
    mirror: &ImageStream,
) -> Result<Job, JobProblem> {
    let to = format!("{}:{tag}", config.alternate_image_repository);
    let keep = format!("--keep-manifest-list={}", keeps_lists(facts, config));
    let own = own_copy(pull_spec, &config.alternate_image_repository, &to);
    let arguments = vec![keep, pull_spec.to_owned(), to];
    let commands = Commands {
        neap: neap(&["mirror"], own),
        oc: (OC, oc(&["image", "mirror"], arguments)),
        secret: config.alternate_image_repository_secret_name.clone(),
    };
    job(
        facts,
        config,
        &names::alternate_mirror_job(tag),
        tag,
        Some(mirror),
        &commands,
    )
    .map(|job| signed(facts, job))
}

/// The Job that asks for the removal of a release whose images are only referred to.
pub(super) fn removal_job(
    facts: &Facts,
    config: &ReleaseConfig,
    tag: &str,
    mirror: Option<&ImageStream>,
) -> Result<Job, JobProblem> {
    let reference = config
        .reference_release
        .as_ref()
        .ok_or(JobProblem::NoPushRepository)?;
    let push = &reference.push_repository;
    if push.is_empty() {
        return Err(JobProblem::NoPushRepository);
    }
    let from = format!("{push}:{}", names::reference_tag(tag));
    let to = format!("{push}:{}", names::reference_removal_tag(tag));
    let own = own_copy(&from, push, &to);
    let arguments = vec!["--keep-manifest-list=true".to_owned(), from, to];
    let commands = Commands {
        neap: neap(&["mirror"], own),
        oc: (OC, oc(&["image", "mirror"], arguments)),
        secret: reference.secret_name.clone(),
    };
    job(
        facts,
        config,
        &names::removal_job(tag),
        tag,
        mirror,
        &commands,
    )
    .map(|job| signed(facts, job))
}

/// Which location of an image the payload names. Where the source has no repository of its own, its images
/// are where they came from, and nothing else can be named.
fn reference_mode<'a>(facts: &Facts, config: &'a ReleaseConfig) -> &'a str {
    if config.reference_mode.is_empty() && !has_registry(&facts.source) {
        "source"
    } else {
        &config.reference_mode
    }
}

fn modes(mode: &str, keep: bool) -> [String; 2] {
    [
        format!("--reference-mode={mode}"),
        format!("--keep-manifest-list={keep}"),
    ]
}

/// The same for our own tools, whose flags have no empty values.
fn own_modes(mode: &str, keep: bool) -> Vec<String> {
    let mode = Some(mode).filter(|mode| !mode.is_empty());
    let mode = mode.map(|mode| format!("--reference-mode={mode}"));
    mode.into_iter()
        .chain(keep.then(|| "--keep-manifest-list".to_owned()))
        .collect()
}

/// The arguments with which our own tools copy a release; its images are copied with it.
fn own_copy(from: &str, repository: &str, to: &str) -> Vec<String> {
    vec![
        from.to_owned(),
        format!("--to={repository}"),
        format!("--to-release-image={to}"),
        "--print-mirror-instructions=none".to_owned(),
    ]
}

fn neap(command: &[&str], arguments: Vec<String>) -> Vec<String> {
    let command = ["release"].iter().chain(command).map(|it| (*it).to_owned());
    command.chain(arguments).collect()
}

fn oc(command: &[&str], arguments: Vec<String>) -> Vec<String> {
    command
        .iter()
        .map(|it| (*it).to_owned())
        .chain(arguments)
        .collect()
}

fn target_repository(facts: &Facts) -> Result<String, JobProblem> {
    let target = facts.target.as_ref().ok_or(JobProblem::NoRepository)?;
    public_repository(target, &facts.options).ok_or(JobProblem::NoRepository)
}

/// The image of a Job: of the configuration, of the options, of a Stable release whose mirror its Job has yet to
/// fill, or the tag `cli` of the mirror.
fn job_image(
    facts: &Facts,
    config: &ReleaseConfig,
    release: &str,
    mirror: Option<&ImageStream>,
) -> Result<String, JobProblem> {
    if let Some(image) = &facts.cli_override {
        return Ok(image.clone());
    }
    if !config.override_cli_image.is_empty() {
        return Ok(config.override_cli_image.clone());
    }
    if let Some(image) = &facts.options.tools.image {
        return Ok(image.clone());
    }
    if let Some(image) = facts.cli_images.get(release) {
        return Ok(image.clone());
    }
    let cli = mirror
        .and_then(|mirror| mirror.spec.tag("cli"))
        .and_then(|tag| tag.from.as_ref());
    if let Some(from) = cli.filter(|from| from.kind == DOCKER_IMAGE) {
        return Ok(from.name.clone());
    }
    let status = mirror.and_then(|mirror| mirror.status.as_ref());
    let repository = status
        .map(|status| status.docker_image_repository.as_str())
        .unwrap_or_default();
    if repository.is_empty() {
        return Err(JobProblem::NoImage);
    }
    Ok(format!("{repository}:cli"))
}

/// Whether the API server keeps repositories for ImageStreams, as only that of OpenShift does.
fn is_of_openshift(source: &ImageStream) -> bool {
    let status = source.status.as_ref();
    status.is_some_and(|status| !status.docker_image_repository.is_empty()) || has_registry(source)
}

fn container(facts: &Facts, name: &str, image: &str, commands: &Commands) -> Value {
    let mut container = json!({
        "name": name,
        "image": image,
        "imagePullPolicy": "Always",
        "env": [{"name": "HOME", "value": "/tmp"}, {"name": "XDG_RUNTIME_DIR", "value": "/tmp/run"}],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    });
    if facts.options.tools.program == Program::Neap {
        // OpenShift gives every namespace its own users, and refuses others. Elsewhere the program needs no root.
        if !is_of_openshift(&facts.source) {
            container["securityContext"] = json!({
                "runAsNonRoot": true,
                "runAsUser": USER,
                "allowPrivilegeEscalation": false,
                "capabilities": {"drop": ["ALL"]},
                "seccompProfile": {"type": "RuntimeDefault"},
            });
        }
        // The program is the entrypoint of its image.
        container["args"] = json!(commands.neap);
        if !commands.secret.is_empty() {
            let directory = json!({"name": "DOCKER_CONFIG", "value": "/tmp/pull-secret"});
            if let Some(variables) = container["env"].as_array_mut() {
                variables.push(directory);
            }
        }
    } else {
        let (script, arguments) = &commands.oc;
        let head = ["/bin/bash", "-c", script, ""].map(str::to_owned);
        let command: Vec<_> = head.into_iter().chain(arguments.iter().cloned()).collect();
        container["command"] = json!(command);
    }
    if !commands.secret.is_empty() {
        container["volumeMounts"] =
            json!([{"name": "pull-secret", "mountPath": "/tmp/pull-secret"}]);
    }
    container
}

/// The Job with the proof that this controller created it.
fn signed(facts: &Facts, mut job: Job) -> Job {
    facts.run_key.sign(&mut job);
    job
}

fn job(
    facts: &Facts,
    config: &ReleaseConfig,
    name: &str,
    tag: &str,
    mirror: Option<&ImageStream>,
    commands: &Commands,
) -> Result<Job, JobProblem> {
    let image = job_image(facts, config, tag, mirror)?;
    let annotations: BTreeMap<&str, String> = BTreeMap::from([
        (annotations::SOURCE, facts.source_name()),
        (
            annotations::TARGET,
            format!("{}/{}", facts.namespace(), facts.target_name()),
        ),
        (annotations::RELEASE_TAG, tag.to_owned()),
        (
            annotations::GENERATION,
            facts.target_generation().to_string(),
        ),
    ]);
    let mut pod = json!({
        "serviceAccountName": facts.options.tools.service_account,
        "restartPolicy": "Never",
        "containers": [container(facts, "build", &image, commands)],
    });
    if !commands.secret.is_empty() {
        pod["volumes"] =
            json!([{"name": "pull-secret", "secret": {"secretName": commands.secret}}]);
    }
    let job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": facts.options.job_namespace,
            "annotations": annotations,
        },
        "spec": {
            "parallelism": 1,
            "backoffLimit": 3,
            "template": {"spec": pod},
        },
    });
    // What is written above is a Job.
    serde_json::from_value(job).map_err(|_| JobProblem::NoImage)
}
