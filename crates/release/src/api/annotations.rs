//! Annotations. Those of `release.openshift.io` are those of the original; those of
//! `release.neaptide.dev` are ours, and no other program needs them.

/// On a source ImageStream: the release configuration, as JSON.
pub const CONFIG: &str = "release.openshift.io/config";
/// On a source ImageStream: the name of a ConfigMap of its namespace that has the configuration, for one
/// that is too large for an annotation.
pub const CONFIG_REF: &str = "release.openshift.io/config-ref";
/// On a target ImageStream: it contains release tags.
pub const HAS_RELEASES: &str = "release.openshift.io/hasReleases";
/// On a release tag: the name of its stream.
pub const NAME: &str = "release.openshift.io/name";
/// Where a release comes from: `<namespace>/<source ImageStream>`.
pub const SOURCE: &str = "release.openshift.io/source";
/// On mirrors and Jobs: `<namespace>/<target ImageStream>`.
pub const TARGET: &str = "release.openshift.io/target";
/// On mirrors and Jobs: the release tag.
pub const RELEASE_TAG: &str = "release.openshift.io/releaseTag";
/// On mirrors and Jobs: the generation of the target when they were made.
pub const GENERATION: &str = "release.openshift.io/generation";
/// On a release tag: when it was created.
pub const CREATION_TIMESTAMP: &str = "release.openshift.io/creationTimestamp";
/// On a release tag: its phase. Written for older readers; never read as the truth where a payload exists.
pub const PHASE: &str = "release.openshift.io/phase";
/// On release tags and mirrors: the hash of the inputs.
pub const HASH: &str = "release.openshift.io/hash";
/// On a release tag: why it failed or was rejected, as one word.
pub const REASON: &str = "release.openshift.io/reason";
/// On a release tag: why it failed or was rejected, for people.
pub const MESSAGE: &str = "release.openshift.io/message";
/// On a tag of a Stable stream: whether the image is assembled again under the name of the tag.
pub const REWRITE: &str = "release.openshift.io/rewrite";
/// On a tag of a Stable stream: a rewrite uses the mirrored images.
pub const MIRROR_IMAGES: &str = "release.openshift.io/mirrorImages";
/// On a release tag: no controller changes or removes it.
pub const KEEP: &str = "release.openshift.io/keep";
/// On an expired release tag: since when it is deleted softly.
pub const SOFT_DELETE: &str = "release.openshift.io/soft-delete";
/// On a release tag of older versions: the results of its jobs, as JSON.
pub const VERIFY: &str = "release.openshift.io/verify";
/// On sources and mirrors: inconsistencies that the producer of the images found, as a JSON list.
pub const INCONSISTENCY: &str = "release.openshift.io/inconsistency";
/// On sources and mirrors: the URL of the build that produced the images.
pub const BUILD_URL: &str = "release.openshift.io/build-url";
/// On sources and mirrors: the event of the build system that produced the images.
pub const RUNTIME_BREW_EVENT: &str = "release.openshift.io/runtime-brew-event";
/// On a source: `locked` keeps the stream from new releases.
pub const MODE: &str = "release.openshift.io/mode";
/// On a ProwJob: the release tag that it verifies.
pub const TO_TAG: &str = "release.openshift.io/tag";
/// On a ProwJob of an upgrade: the release tag that it starts from.
pub const FROM_TAG: &str = "release.openshift.io/from-tag";
/// On a ProwJob: the architecture of the release.
pub const ARCHITECTURE: &str = "release.openshift.io/architecture";
/// On a ProwJob: the name of its periodic.
pub const PROW_JOB: &str = "prow.k8s.io/job";

/// The prefix of the annotation on a published ImageStream that names the last release published from a
/// stream.
pub const PUBLISHED_SOURCE_PREFIX: &str = "release.openshift.io/source-";

/// On a source ImageStream that no controller owns, because it is being handed over: the name of the ConfigMap with
/// its configuration.
pub const HAND_OVER: &str = "release.neaptide.dev/hand-over";
/// On a source ImageStream: what the stream waits for, as JSON. See `stream::StreamState`.
pub const STREAM_STATE: &str = "release.neaptide.dev/stream-state";
/// On a source ImageStream: no new release is cut while it is there; its value is the reason.
pub const PAUSED: &str = "release.neaptide.dev/paused";
/// On a source ImageStream: the release tag whose hash no longer keeps a new release from being cut.
pub const RETRY: &str = "release.neaptide.dev/retry";
/// On a ReleasePayload: additional attempts by verification job, as a JSON object of numbers.
pub const EXTRA_ATTEMPTS: &str = "release.neaptide.dev/extra-attempts";
/// On a ReleasePayload: the id of the key that signs the identity of its runs. A payload without it was
/// made by another controller, whose runs are known by their names. On a release tag: a release controller of this
/// project cut it, and only a payload with a token is its own.
pub const RUN_KEY: &str = "release.neaptide.dev/run-key";
/// On a ReleasePayload: proof that the release controller created it, made with the key of its runs.
pub const PAYLOAD_TOKEN: &str = "release.neaptide.dev/payload-token";
/// On a Job: proof that the release controller created it with these commands, made with the same key.
pub const JOB_TOKEN: &str = "release.neaptide.dev/job-token";
/// On a ProwJob: the verification job that it is a run of.
pub const RUN_JOB: &str = "release.neaptide.dev/run-job";
/// On a ProwJob: proof that the controller launched it for its payload.
pub const RUN_TOKEN: &str = "release.neaptide.dev/run-token";
/// On a ReleasePayload whose override was set with `neap release`: the user who did it.
pub const OVERRIDE_BY: &str = "release.neaptide.dev/override-by";
/// On objects without a tag: since when garbage collection has seen that nothing refers to them.
pub const UNREFERENCED_SINCE: &str = "release.neaptide.dev/unreferenced-since";
/// On a ReleasePayload: the verification jobs that the verdict does not wait for, separated by commas.
pub const ASYNC_JOBS: &str = "release.neaptide.dev/async-jobs";
/// On a ReleasePayload: the upgrade jobs that had no release to start from when it was cut, and why, as a
/// JSON object. The verdict does not wait for them.
pub const SKIPPED_JOBS: &str = "release.neaptide.dev/skipped-jobs";
