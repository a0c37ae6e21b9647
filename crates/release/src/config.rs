//! The configuration of a stream: what is released, when, and what verifies it.
//!
//! It is JSON in an annotation of the source ImageStream, or in a ConfigMap that an annotation names. It is
//! read as the original reads it: unknown fields are ignored and the case of field names does not matter.
//! `neap release validate` is stricter. Every error names the path of the field.

mod check;
mod parse;
mod qualifiers;
mod reloaded;
mod schedule;
mod shape;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, time::Duration};

use neap_kit::duration;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use self::{
    check::{Checked, check, check_all},
    parse::{ANNOTATION_LIMIT, CONFIG_MAP_LIMIT, ConfigError, Problem, parse},
    qualifiers::{
        BadgeStatus, Escalation, JiraSettings, Notifications, QualifierError, ReleaseQualifier,
        ReleaseQualifiers,
    },
    reloaded::Reloaded,
    schedule::Schedule,
};

/// The aggregator of runs that are analysed together, where the configuration names none.
pub const DEFAULT_AGGREGATOR: &str = "release-openshift-release-analysis-aggregator";

/// The configuration of a stream.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReleaseConfig {
    /// The name of the stream and the prefix of its release tags.
    pub name: String,
    /// A text that is shown above the stream.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The stream is shown after others.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hide: bool,
    /// The stream is over: nothing is created or verified any more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub end_of_life: bool,
    /// `Stable`, or `Integration` for everything else.
    #[serde(rename = "as", skip_serializing_if = "String::is_empty")]
    pub as_: String,
    /// The target ImageStream of an Integration stream.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub to: String,
    /// No release is cut while this many have no verdict; no limit if zero.
    #[serde(skip_serializing_if = "is_zero")]
    pub max_unready_releases: i64,
    /// The least age of the newest release before another is cut.
    #[serde(skip_serializing_if = "is_zero")]
    pub min_creation_interval_seconds: i64,
    /// `source` keeps the original locations of images; `public` or nothing uses the public repository.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reference_mode: String,
    /// A Secret of the job namespace with credentials of registries.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pull_secret_name: String,
    /// The prefix of the names of mirrors; the name of the source if empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mirror_prefix: String,
    /// The image of Jobs.
    #[serde(rename = "overrideCLIImage", skip_serializing_if = "String::is_empty")]
    pub override_cli_image: String,
    /// The age at which accepted releases beyond the newest five are removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<Nanoseconds>,
    /// The jobs that verify a release.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub verify: BTreeMap<String, ReleaseVerification>,
    /// Jobs that run at certain times on the newest accepted release.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub periodic: BTreeMap<String, ReleasePeriodic>,
    /// Where the newest accepted release is published.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub publish: BTreeMap<String, ReleasePublish>,
    /// Comparisons that are shown with the stream.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub check: BTreeMap<String, ReleaseCheck>,
    /// The platforms on which upgrades to a Stable release are tested.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub upgrade: BTreeMap<String, UpgradeVerification>,
    /// A repository to which each release is copied.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub alternate_image_repository: String,
    /// The Secret for that repository.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub alternate_image_repository_secret_name: String,
    /// Where releases of images are kept that are only referred to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference_release: Option<ReferenceRelease>,
    /// Manifest lists are not kept.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disable_manifest_list_mode: bool,
}

fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

impl ReleaseConfig {
    /// Whether users create its releases by tagging images.
    pub fn is_stable(&self) -> bool {
        self.as_ == "Stable"
    }

    /// The verification jobs that are launched: not disabled, and with a Prow job.
    pub fn verified_by(&self) -> impl Iterator<Item = (&str, &ReleaseVerification, &str)> {
        self.verify.iter().filter_map(|(name, one)| {
            let job = one.prow_job.as_ref()?;
            (!one.disabled).then_some((name.as_str(), one, job.name.as_str()))
        })
    }

    /// The platforms of upgrade jobs.
    pub fn upgraded_on(&self) -> impl Iterator<Item = (&str, &str)> {
        self.upgrade.iter().filter_map(|(platform, one)| {
            let job = one.prow_job.as_ref()?;
            (!one.disabled).then_some((platform.as_str(), job.name.as_str()))
        })
    }

    /// Whether every release is copied to another repository.
    pub fn has_alternate_repository(&self) -> bool {
        !self.alternate_image_repository.is_empty()
            && !self.alternate_image_repository_secret_name.is_empty()
    }
}

/// A duration that is read in the notation of Go and written as nanoseconds, as the original does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Nanoseconds(pub Duration);

impl Serialize for Nanoseconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl<'de> Deserialize<'de> for Nanoseconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        duration::parse(&text)
            .map(Self)
            .map_err(serde::de::Error::custom)
    }
}

/// A Prow periodic by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProwJobReference {
    /// The name.
    pub name: String,
}

/// A verification job.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReleaseVerification {
    /// It is not run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
    /// The release does not have to pass it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// The verdict does not even wait for it.
    #[serde(rename = "async", skip_serializing_if = "std::ops::Not::not")]
    pub asynchronous: bool,
    /// It upgrades from another release.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub upgrade: bool,
    /// Which release it upgrades from.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub upgrade_from: String,
    /// The same, in more detail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upgrade_from_release: Option<UpgradeFromRelease>,
    /// The Prow job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prow_job: Option<ProwJobReference>,
    /// How often it is run again after a failure.
    #[serde(skip_serializing_if = "is_zero")]
    pub max_retries: i32,
    /// It is run many times, and the runs are analysed together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregated_prow_job: Option<AggregatedProwJob>,
    /// It analyses other jobs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub multi_job_analysis: bool,
    /// The qualifiers that it takes part in, with its own settings.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub qualifiers: BTreeMap<String, ReleaseQualifier>,
}

/// Runs that are analysed together.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AggregatedProwJob {
    /// The job that analyses them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prow_job: Option<ProwJobReference>,
    /// The number of runs.
    pub analysis_job_count: i32,
}

impl AggregatedProwJob {
    /// The name of the periodic that analyses the runs.
    pub fn aggregator(&self) -> &str {
        let name = self.prow_job.as_ref().map(|job| job.name.as_str());
        name.filter(|name| !name.is_empty())
            .unwrap_or(DEFAULT_AGGREGATOR)
    }
}

/// Which release an upgrade starts from: one of three.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UpgradeFromRelease {
    /// An accepted release of an Integration stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate: Option<UpgradeCandidate>,
    /// An accepted release of a Stable stream within bounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prerelease: Option<UpgradePrerelease>,
    /// A release of the update service.
    #[serde(rename = "release", skip_serializing_if = "Option::is_none")]
    pub official: Option<UpgradeOfficial>,
}

/// An accepted release of an Integration stream.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UpgradeCandidate {
    /// `nightly`, `ci` or another kind of stream.
    pub stream: String,
    /// Major and minor version.
    pub version: String,
    /// How many newer ones to skip.
    #[serde(skip_serializing_if = "is_zero")]
    pub relative: i32,
}

/// An accepted release within bounds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UpgradePrerelease {
    /// The bounds.
    pub version_bounds: VersionBounds,
    /// The Stable stream; `4-stable` if empty. Ours.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stream: String,
}

/// Versions between two others, both excluded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct VersionBounds {
    /// Below all.
    pub lower: String,
    /// Above all.
    pub upper: String,
}

/// A release of the update service.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UpgradeOfficial {
    /// Major and minor version.
    pub version: String,
    /// The channel.
    pub channel: String,
    /// The architecture.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub architecture: String,
}

/// A job that runs at certain times.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReleasePeriodic {
    /// The time between two runs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub interval: String,
    /// When it runs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cron: String,
    /// It upgrades from another release.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub upgrade: bool,
    /// Which release it upgrades from.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub upgrade_from: String,
    /// The same, in more detail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upgrade_from_release: Option<UpgradeFromRelease>,
    /// The Prow job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prow_job: Option<ProwJobReference>,
}

/// Where a release is published: the first of the kinds that is set.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReleasePublish {
    /// It is not published.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
    /// A tag of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag_ref: Option<PublishTag>,
    /// Another ImageStream, which gets the images of the release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_stream_ref: Option<PublishStream>,
    /// Issues that the release resolves are marked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify_issues: Option<VerifyIssues>,
}

/// A tag of the target ImageStream.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PublishTag {
    /// Its name.
    pub name: String,
}

/// Another ImageStream.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PublishStream {
    /// Its name.
    pub name: String,
    /// Its namespace; that of the target if empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Only these tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Not these tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude_tags: Vec<String>,
}

/// Issues that the release resolves.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VerifyIssues {
    /// The release before the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_release_tag: Option<PreviousReleaseTag>,
}

/// A release tag.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PreviousReleaseTag {
    /// The namespace of the ImageStream.
    pub namespace: String,
    /// The ImageStream.
    pub name: String,
    /// The tag.
    pub tag: String,
}

/// A comparison that is shown with the stream.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReleaseCheck {
    /// The images are those of another stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consistent_images: Option<ConsistentImages>,
}

/// The images are those of another stream.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ConsistentImages {
    /// The other stream.
    pub parent: String,
}

/// Upgrades to a Stable release on one platform.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UpgradeVerification {
    /// They are not tested.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
    /// The Prow job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prow_job: Option<ProwJobReference>,
}

/// Where releases of images are kept that are only referred to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReferenceRelease {
    /// Where they are pushed to.
    pub push_repository: String,
    /// Where they are pulled from.
    pub pull_repository: String,
    /// The Secret for the first.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub secret_name: String,
}
