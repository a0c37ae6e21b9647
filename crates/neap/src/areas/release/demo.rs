//! `neap demo`: breaks a component of the example in `neap up`, and shows how its release is rejected.

use std::{io::Write, time::Duration};

use clap::{Args, Subcommand};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    api::{ListParams, LogParams},
};
use neap_kit::{apply::ResourceKind, client::Client, key::Key, why::chain};
use neap_release::{
    api::{JobState, JobStatus, ReleasePayload, annotations, labels},
    image_stream::api::{ImageSource, ImageStream},
    oci::{
        client::{Options as RegistryOptions, RegistryClient},
        credentials::Credentials,
        reference::ImageRef,
    },
    payload::Phase,
    payload_image::sample,
};
use serde_json::json;

use super::cli::{
    controllers::not_set_up,
    releases::{Releases, Stream, write_failed},
};
use crate::{
    cli::Scope,
    exit::{Exit, Failure},
    inspect::print,
    symbols::Symbols,
};

/// The component that is broken.
const COMPONENT: &str = "web-operator";
/// The file that the broken component lacks.
const FILE: &str = "manifests/0000_30_web-operator_02_deployment.yaml";
/// The name of the label that makes each broken image another one.
const LABEL: &str = "release.neaptide.dev/demo";
/// The tag of broken images.
const BROKEN: &str = "broken";
/// The tag of good images.
const GOOD: &str = "v1";
/// The example.
const EXAMPLE: &str = "neap release example | kubectl apply -f -";
/// Bounds the wait for a verdict.
const TIMEOUT: Duration = Duration::from_mins(3);
/// The time between two looks.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The annotation of pods with the name of their ProwJob.
const PROW_JOB_ID: &str = "prow.k8s.io/id";
/// How many lines of the log of a failed job are shown.
const LOG_LINES: i64 = 5;

/// Show what a release controller does when something goes wrong, in `neap up`
#[derive(Debug, Args)]
pub(crate) struct DemoCommand {
    #[command(subcommand)]
    demo: Demo,
}

#[derive(Debug, Subcommand)]
enum Demo {
    /// Break one component of the example, and show why its release is rejected
    Reject(DemoOptions),

    /// Undo it: use the good component again, and show the release that is accepted
    Repair(DemoOptions),
}

#[derive(Debug, Args)]
struct DemoOptions {
    /// Name of the stream
    #[arg(long, value_name = "NAME", default_value = "4.21.0-0.nightly")]
    stream: String,

    /// Namespace of the stream
    #[arg(short, long, value_name = "NAMESPACE", default_value = "releases")]
    namespace: String,

    #[command(flatten)]
    cluster: crate::cli::ClusterOptions,
}

impl DemoCommand {
    /// Runs the demonstration.
    pub(crate) async fn run(self, symbols: Symbols, out: &mut dyn Write) -> Result<(), Failure> {
        let (options, is_broken) = match self.demo {
            Demo::Reject(options) => (options, true),
            Demo::Repair(options) => (options, false),
        };
        let scope = Scope {
            cluster: options.cluster,
            namespace: Some(options.namespace),
            all_namespaces: false,
        };
        let releases = Releases::of(&scope).await?;
        let stream = releases.stream(&options.stream).await?;
        let before: Vec<String> = names(&releases, &stream.name).await?;
        let source = Key::of(&stream.source);
        refuse_if_paused(&stream)?;
        let Some(image) = exchange(&releases, &stream.source, is_broken).await? else {
            let tag = if is_broken { BROKEN } else { GOOD };
            let text = format!(
                "{} component {COMPONENT} of {source} is {tag} already; nothing was changed",
                symbols.done
            );
            print::text(out, &text)?;
            let look = format!("Look      neap release list -n {}", source.namespace());
            return print::text(out, &look);
        };
        let what = if is_broken {
            "lacks the Deployment of the operator"
        } else {
            "is complete"
        };
        print::text(
            out,
            &format!(
                "{} component {COMPONENT} of {source} is {image}, which {what}",
                symbols.done
            ),
        )?;
        let waiting = Waiting {
            stream: &stream.name,
            namespace: source.namespace(),
            before: &before,
        };
        let payload = verdict(&releases, &waiting, symbols, out).await?;
        show(&releases, &payload, is_broken, out).await
    }
}

/// A paused stream gets no release to show.
fn refuse_if_paused(stream: &Stream) -> Result<(), Failure> {
    let all = stream.source.metadata.annotations.as_ref();
    let value = |name: &str| all.and_then(|all| all.get(name)).map(String::as_str);
    let resume = format!(
        "resume it: neap release pause {} --resume -n {}; nothing was changed",
        stream.name,
        Key::of(&stream.source).namespace()
    );
    let (why, remedy) = if let Some(reason) = value(annotations::PAUSED) {
        (reason, resume)
    } else if value(annotations::MODE) == Some("locked") {
        let why = "the producer of the images has locked the stream";
        (
            why,
            "wait until it unlocks the stream; nothing was changed".to_owned(),
        )
    } else {
        return Ok(());
    };
    let what = format!("the stream is paused: {why}");
    let why = "a paused stream gets no new releases";
    Err(Failure::new("NT-RELEASE-0009", Exit::Refused, &what, why).remedy(remedy))
}

/// The names of the releases of a stream.
async fn names(releases: &Releases, stream: &str) -> Result<Vec<String>, Failure> {
    let all = releases.payloads().await?;
    let own = all
        .into_iter()
        .filter(|one| one.spec.payload_coordinates.stream_name == stream);
    Ok(own.filter_map(|one| one.metadata.name).collect())
}

/// The verdict that a demonstration expects.
fn wanted(is_broken: bool) -> Phase {
    if is_broken {
        Phase::Rejected
    } else {
        Phase::Accepted
    }
}

/// Gives the component another image; none if it has it already.
async fn exchange(
    releases: &Releases,
    source: &ImageStream,
    is_broken: bool,
) -> Result<Option<ImageRef>, Failure> {
    let mut tags = source.spec.tags.clone();
    let tag = tags.iter_mut().find(|tag| tag.name == COMPONENT);
    let from = tag
        .as_ref()
        .and_then(|tag| Some(tag.from.as_ref()?.name.clone()));
    let (Some(tag), Some(from)) = (tag, from) else {
        return Err(not_the_example(&format!(
            "{} has no tag {COMPONENT} with an image",
            Key::of(source)
        )));
    };
    let current: ImageRef = from
        .parse()
        .map_err(|error| not_the_example(&chain(&error)))?;
    let wanted = current.with_tag(if is_broken { BROKEN } else { GOOD });
    let wanted = wanted.map_err(|error| not_the_example(&chain(&error)))?;
    if current.tag() == wanted.tag() {
        return Ok(None);
    }
    if is_broken {
        push_broken(releases, &wanted).await?;
    }
    tag.from = Some(ImageSource::image(wanted.to_string()));
    // Another generation: the same tag may have another image by now.
    tag.generation = None;
    // The tags are one list, so they are written only in the state that was read.
    let kind = ResourceKind::of::<ImageStream>();
    let change = json!({"spec": {"tags": tags}});
    let written = releases
        .writer()
        .merge(&kind, &source.metadata, None, change)
        .await;
    written.map_err(|error| write_failed(&Key::of(source), &error))?;
    Ok(Some(wanted))
}

async fn push_broken(releases: &Releases, target: &ImageRef) -> Result<(), Failure> {
    let mut samples = sample::release().into_iter();
    let mut image = samples
        .find(|it| it.name == COMPONENT)
        .ok_or_else(|| not_the_example("there is no such sample"))?;
    image.files.remove(FILE);
    let now = releases.clock.now().to_string();
    image.labels.insert(LABEL.to_owned(), now);
    let http = Client::builder("registry", releases.clock).build();
    let http = http.map_err(|error| not_set_up(&error.to_string()))?;
    let client = RegistryClient::new(http, Credentials::none(), RegistryOptions::default());
    let built = image
        .build()
        .map_err(|error| not_the_example(&chain(&error)))?;
    sample::push(&client, &built, target)
        .await
        .map_err(|error| {
            Failure::new(
                "NT-RELEASE-0104",
                Exit::Failed,
                "the broken component cannot be pushed",
                &chain(&error),
            )
            .remedy("run the demonstration on the machine of neap up, whose registry takes it")
        })
}

fn not_the_example(why: &str) -> Failure {
    let what = "this is not the stream of the example";
    Failure::new("NT-RELEASE-0009", Exit::Refused, what, why)
        .remedy(format!("start neap up, and run {EXAMPLE}"))
}

/// What a demonstration waits for.
struct Waiting<'a> {
    stream: &'a str,
    namespace: &'a str,
    /// The releases that were there before.
    before: &'a [String],
}

/// Waits for a new release of the stream and for the verdict about it.
async fn verdict(
    releases: &Releases,
    waiting_for: &Waiting<'_>,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<ReleasePayload, Failure> {
    let Waiting {
        stream,
        namespace,
        before,
    } = *waiting_for;
    let mut shown: Option<Phase> = None;
    let waiting = async {
        loop {
            let all = releases.payloads().await?;
            let is_new = |one: &ReleasePayload| {
                let name = one.metadata.name.as_deref().unwrap_or_default();
                one.spec.payload_coordinates.stream_name == stream
                    && !before.iter().any(|known| known == name)
            };
            if let Some(payload) = all.into_iter().find(is_new) {
                let phase = Phase::of_payload(&payload);
                let name = payload.metadata.name.clone().unwrap_or_default();
                if shown != Some(phase) {
                    let is_good = matches!(phase, Phase::Ready | Phase::Accepted);
                    let mark = if is_good { symbols.done } else { symbols.note };
                    let text = format!("{mark} {name} is {phase}");
                    print::text(out, &text)?;
                    shown = Some(phase);
                }
                if phase.is_final() {
                    return Ok(payload);
                }
            }
            releases.clock.sleep(POLL_INTERVAL).await;
        }
    };
    let found = releases.clock.within(TIMEOUT, waiting).await;
    found.unwrap_or_else(|| {
        let minutes = TIMEOUT.as_secs() / 60;
        let what = format!("there was no verdict within {minutes} minutes");
        let why = match shown {
            None => "no release was cut of the new image",
            Some(_) => "its image was not assembled, or its jobs have not ended",
        };
        Err(
            Failure::new("NT-RELEASE-0010", Exit::TimedOut, &what, why).remedy(format!(
                "ask why: neap release plan {stream} -n {namespace}, neap release list -n {namespace}"
            )),
        )
    })
}

/// Shows the verdict, the jobs that decided it and what they said.
async fn show(
    releases: &Releases,
    payload: &ReleasePayload,
    is_broken: bool,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let name = payload.metadata.name.clone().unwrap_or_default();
    let phase = Phase::of_payload(payload);
    let mut lines = vec![String::new(), format!("Why       {}", why(payload))];
    let status = payload.status.iter();
    let failed = status
        .flat_map(|status| &status.blocking_job_results)
        .filter(|job| job.state == JobState::Failure);
    for job in failed {
        lines.push(format!("Job       {} ({})", job.name, job.job_name));
        for line in log(releases, payload, job).await {
            lines.push(format!("            {line}"));
        }
    }
    let place = releases.namespace.as_deref().unwrap_or_default();
    lines.push(String::new());
    lines.push(format!("Look      neap release show {name} -n {place}"));
    lines.push(format!(
        "          neap explain releasepayload/{name} -n {place}"
    ));
    if is_broken {
        lines.push("Repair    neap demo repair".to_owned());
    }
    print::text(out, &lines.join("\n"))?;
    let wanted = wanted(is_broken);
    if phase == wanted {
        return Ok(());
    }
    let what = format!("{name} is {phase}, and the demonstration expects {wanted}");
    let why = format!(
        "{}: the stream has other jobs than the example",
        why(payload)
    );
    Err(Failure::new("NT-RELEASE-0009", Exit::Failed, &what, &why)
        .remedy(format!("restore the example: {EXAMPLE}")))
}

fn why(payload: &ReleasePayload) -> String {
    super::cli::why(payload)
}

/// The last lines that the last run of a job wrote.
async fn log(releases: &Releases, payload: &ReleasePayload, job: &JobStatus) -> Vec<String> {
    let Some(run) = job.results.last() else {
        return Vec::new();
    };
    let namespace = &payload
        .spec
        .payload_creation_config
        .prow_coordinates
        .namespace;
    let pods: Api<Pod> = Api::namespaced(releases.cluster.client.clone(), namespace);
    let selected = ListParams::default().labels(&format!(
        "{}={}",
        labels::PAYLOAD,
        payload.metadata.name.as_deref().unwrap_or_default(),
    ));
    let Ok(found) = pods.list(&selected).await else {
        return Vec::new();
    };
    // A run that its node cut short has several Jobs.
    let of_run = found.items.into_iter().filter(|pod| {
        let annotations = pod.metadata.annotations.as_ref();
        annotations.and_then(|all| all.get(PROW_JOB_ID)) == Some(&run.coordinates.name)
    });
    let pod = of_run.max_by_key(|pod| pod.metadata.creation_timestamp.clone().map(|time| time.0));
    let Some(pod) = pod.and_then(|pod| pod.metadata.name) else {
        return Vec::new();
    };
    let parameters = LogParams {
        tail_lines: Some(LOG_LINES),
        ..LogParams::default()
    };
    let text = pods.logs(&pod, &parameters).await.unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paused_stream_is_not_waited_for() {
        let stream = |annotations: serde_json::Value| {
            let source = json!({
                "metadata": {"name": "4.21-latest", "namespace": "releases", "annotations": annotations}, "spec": {},
            });
            Stream {
                name: "4.21.0-0.nightly".to_owned(),
                source: serde_json::from_value(source).unwrap(),
            }
        };
        assert!(refuse_if_paused(&stream(json!({}))).is_ok());
        assert!(refuse_if_paused(&stream(json!({annotations::MODE: "locked"}))).is_err());
        let paused = stream(json!({annotations::PAUSED: "maintenance"}));
        let failure = format!("{:?}", refuse_if_paused(&paused).unwrap_err());
        for text in [
            "the stream is paused: maintenance",
            "neap release pause 4.21.0-0.nightly --resume -n releases",
        ] {
            assert!(failure.contains(text), "{failure}");
        }
    }
}
