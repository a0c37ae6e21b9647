//! The objects beside which the controllers are measured.

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::{Value, json};

pub(super) const STREAMS: &str = "/apis/image.openshift.io/v1/namespaces/default/imagestreams";
pub(super) const PAYLOADS: &str =
    "/apis/release.openshift.io/v1alpha1/namespaces/default/releasepayloads";
pub(super) const PROW_JOBS: &str = "/apis/prow.k8s.io/v1/namespaces/default/prowjobs";
pub(super) const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
/// The key of the job that verifies a new release.
pub(super) const KEY: &str = "aws";
/// Bytes of a ProwJob as JSON.
pub(super) const SIZE: usize = 8 << 10;
/// The ProwJobs of a payload.
const RUNS_OF_A_PAYLOAD: usize = 20;

/// How many objects there are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers {
    pub(super) streams: usize,
    payloads: usize,
}

impl Numbers {
    pub(super) fn divided(divide: usize) -> Self {
        let divide = divide.max(1);
        Self {
            streams: (300 / divide).max(2),
            payloads: (5000 / divide).max(20),
        }
    }

    pub(super) fn payloads(self) -> usize {
        self.payloads
    }

    pub(super) fn runs(self) -> usize {
        self.payloads * RUNS_OF_A_PAYLOAD
    }

    /// The stream of a payload, and which of its releases it is.
    fn place(self, payload: usize) -> (usize, usize) {
        (payload % self.streams, payload / self.streams)
    }

    pub(super) fn tag(self, payload: usize) -> String {
        let (stream, release) = self.place(payload);
        format!("{}-2026-01-{:02}-000000", stream_name(stream), release + 1)
    }

    pub(super) fn run_name(self, run: usize) -> String {
        let (payload, number) = (run / RUNS_OF_A_PAYLOAD, run % RUNS_OF_A_PAYLOAD);
        format!("{}-{}", self.tag(payload), key(number))
    }
}

fn key(number: usize) -> String {
    format!("e2e-{number:02}")
}

fn periodic(number: usize) -> String {
    format!("periodic-e2e-{number:02}")
}

pub(super) fn stream_name(number: usize) -> String {
    format!("4.{number}.0-0.nightly")
}

fn source_name(number: usize) -> String {
    format!("source-{number}")
}

pub(super) fn source_status(number: usize) -> String {
    format!("{STREAMS}/{}/status", source_name(number))
}

/// The digests of the images of a source.
fn digests(change: usize) -> [String; 2] {
    [1, 1000 + change].map(|number| format!("sha256:{number:064}"))
}

/// What the release controller compares the images of a source by.
fn input_hash(change: usize) -> String {
    let all = digests(change).concat();
    let hash = digest(&SHA256, all.as_bytes());
    let hex: Vec<_> = hash
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("sha256:{}", hex.concat())
}

pub(super) fn source(number: usize) -> Value {
    let config = json!({
        "name": stream_name(number), "to": format!("target-{number}"),
        "verify": {KEY: {"prowJob": {"name": "periodic-aws"}}},
    });
    let tags = ["cli", "etcd"].map(|name| {
        let from = format!("registry.example.com/{name}:1");
        json!({"name": name, "from": {"kind": "DockerImage", "name": from}})
    });
    json!({
        "apiVersion": "image.openshift.io/v1", "kind": "ImageStream",
        "metadata": {
            "name": source_name(number),
            "annotations": {"release.openshift.io/config": config.to_string()},
        },
        "spec": {"tags": tags},
    })
}

/// The status of a source whose second image has changed `change` times.
pub(super) fn imported(change: usize) -> Value {
    let names = ["cli", "etcd"].into_iter();
    let tags = names.zip(digests(change)).map(|(name, digest)| {
        let item = json!({
            "created": "2026-01-01T00:00:00Z", "image": digest, "generation": 1,
            "dockerImageReference": format!("registry.example.com/{name}@{digest}"),
        });
        json!({"tag": name, "items": [item]})
    });
    json!({"status": {"tags": tags.collect::<Vec<_>>()}})
}

/// The target of a stream with its accepted releases; the newest has the images of the source.
pub(super) fn target(numbers: Numbers, number: usize) -> Value {
    let payloads = (number..numbers.payloads).step_by(numbers.streams);
    let mut tags: Vec<_> = payloads
        .map(|payload| {
            let (_, release) = numbers.place(payload);
            json!({"name": numbers.tag(payload), "annotations": {
                "release.openshift.io/name": stream_name(number),
                "release.openshift.io/source": format!("default/{}", source_name(number)),
                "release.openshift.io/creationTimestamp":
                    format!("2026-01-{:02}T00:00:00Z", release + 1),
                "release.openshift.io/phase": "Accepted",
                "release.openshift.io/hash": format!("sha256:{payload:064}"),
            }})
        })
        .collect();
    if let Some(newest) = tags.last_mut() {
        newest["annotations"]["release.openshift.io/hash"] = input_hash(0).into();
    }
    json!({
        "apiVersion": "image.openshift.io/v1", "kind": "ImageStream",
        "metadata": {
            "name": format!("target-{number}"),
            "annotations": {"release.openshift.io/hasReleases": "true"},
        },
        "spec": {"tags": tags},
    })
}

/// A payload of a controller that knows its runs by their names.
pub(super) fn payload(numbers: Numbers, payload: usize) -> Value {
    let (stream, _) = numbers.place(payload);
    let tag = numbers.tag(payload);
    let jobs = (0..RUNS_OF_A_PAYLOAD).map(|number| {
        json!({"ciConfigurationName": key(number), "ciConfigurationJobName": periodic(number)})
    });
    json!({
        "apiVersion": "release.openshift.io/v1alpha1", "kind": "ReleasePayload",
        "metadata": {"name": tag},
        "spec": {
            "payloadCoordinates": {
                "namespace": "default", "streamName": stream_name(stream),
                "imagestreamName": format!("target-{stream}"), "imagestreamTagName": tag,
            },
            "payloadCreationConfig": {
                "releaseCreationCoordinates": {
                    "namespace": "default", "releaseCreationJobName": tag,
                },
                "prowCoordinates": {"namespace": "default"},
            },
            "payloadVerificationConfig": {
                "payloadVerificationDataSource": "BuildFarmLookup",
                "blockingJobs": jobs.collect::<Vec<_>>(),
            },
        },
    })
}

/// The status of a payload whose image was created.
pub(super) fn image_created(numbers: Numbers, payload: usize) -> Value {
    let tag = numbers.tag(payload);
    json!({"status": {"releaseCreationJobResult": {
        "coordinates": {"name": tag, "namespace": "default"}, "status": "Success",
        "message": "Release creation Job complete",
    }}})
}

/// A ProwJob as Prow keeps it: most of it is the pod.
pub(super) fn run(numbers: Numbers, run: usize) -> Value {
    let (payload, number) = (run / RUNS_OF_A_PAYLOAD, run % RUNS_OF_A_PAYLOAD);
    let (stream, _) = numbers.place(payload);
    let (tag, job) = (numbers.tag(payload), periodic(number));
    let mut object = json!({
        "apiVersion": "prow.k8s.io/v1", "kind": "ProwJob",
        "metadata": {
            "name": numbers.run_name(run),
            "labels": {
                "prow.k8s.io/job": job, "prow.k8s.io/type": "periodic", "created-by-prow": "true",
                "release.openshift.io/verify": "true", "release.openshift.io/payload": tag,
            },
            "annotations": {
                "prow.k8s.io/job": job, "release.openshift.io/tag": tag,
                "release.openshift.io/source": format!("default/{}", source_name(stream)),
            },
        },
        "spec": {
            "type": "periodic", "agent": "kubernetes", "cluster": "build05", "namespace": "ci",
            "job": job,
            "pod_spec": {"containers": [{"name": "", "image": "ci-operator:latest"}]},
        },
        "status": passed(),
    });
    let missing = SIZE.saturating_sub(object.to_string().len());
    object["spec"]["pod_spec"]["containers"][0]["env"] = padding(missing, run);
    object
}

fn padding(bytes: usize, number: usize) -> Value {
    let text = format!("{number:08}").repeat(bytes / 8 + 1);
    json!([{"name": "UNRESOLVED_CONFIG", "value": text}])
}

pub(super) fn passed() -> Value {
    json!({
        "state": "success", "startTime": "2026-01-02T03:04:05Z",
        "completionTime": "2026-01-02T04:04:05Z", "description": "Job succeeded.",
        "url": "https://prow.example.com/view/gs/test-platform-results/logs/periodic/1",
    })
}

/// The job configuration of Prow; the ProwJobs that are launched are as large as the others.
pub(super) fn job_config() -> Value {
    json!({"periodics": [{
        "name": "periodic-aws", "agent": "kubernetes", "cluster": "build05", "interval": "24h",
        "spec": {"containers": [{"image": "ci-operator:latest", "env": padding(7 << 10, 0)}]},
    }]})
}

/// The status of a Job that has created an image.
pub(super) fn completed() -> Value {
    let now = "2026-01-02T03:04:05Z";
    let condition = |type_: &str| {
        json!({
            "type": type_, "status": "True", "reason": "CompletionsReached", "message": "",
            "lastTransitionTime": now, "lastProbeTime": now,
        })
    };
    json!({"status": {
        "startTime": now, "completionTime": now, "succeeded": 1,
        "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
    }})
}

pub(super) fn is_accepted(payload: &Value) -> bool {
    let conditions = payload["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it["type"] == "PayloadAccepted" && it["status"] == "True")
}
