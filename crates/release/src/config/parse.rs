//! From text to a configuration.

use std::fmt;

use serde_json::Value;

use super::{ReleaseConfig, shape};
use crate::oci::reference::is_tag;

/// The most bytes that an annotation may have.
pub const ANNOTATION_LIMIT: usize = 16 * 1024;
/// The most bytes that a ConfigMap may have.
pub const CONFIG_MAP_LIMIT: usize = 1024 * 1024;

/// What `upgradeFrom` may be. `PreviousMicro` is the name in the documentation of the original.
const UPGRADE_FROM: [&str; 6] = [
    "",
    "Previous",
    "PreviousMinus1",
    "PreviousMinor",
    "PreviousPatch",
    "PreviousMicro",
];

/// Something that is wrong with a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The path of the field.
    pub path: String,
    /// What is wrong, for people.
    pub message: String,
}

impl Problem {
    /// `message` about the field at `path`.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return write!(f, "{}", self.message);
        }
        write!(f, "{}: {}", self.path, self.message)
    }
}

pub(super) fn joined(problems: &[Problem]) -> String {
    let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
    problems.join("; ")
}

/// The configuration of a stream cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// It is too long.
    #[error(
        "release config must be less than 16k: it has {bytes} bytes, and {limit} fit here; a longer one may be in a ConfigMap that the annotation release.openshift.io/config-ref names"
    )]
    TooLarge {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// It is not JSON.
    #[error("the release config is not JSON: {0}")]
    NotJson(String),
    /// The named ConfigMap or its key is not there.
    #[error("{0}")]
    Missing(String),
    /// Fields are wrong.
    #[error("{}", joined(.0))]
    Invalid(Vec<Problem>),
}

/// Reads a configuration of at most `limit` bytes. Unknown fields are ignored.
pub fn parse(text: &str, limit: usize) -> Result<ReleaseConfig, ConfigError> {
    let (config, _) = parse_with_unknown(text, limit)?;
    let problems = problems(&config);
    if problems.is_empty() {
        Ok(config)
    } else {
        Err(ConfigError::Invalid(problems))
    }
}

/// The same without a look at the values; and the paths of unknown fields.
pub(super) fn parse_with_unknown(
    text: &str,
    limit: usize,
) -> Result<(ReleaseConfig, Vec<String>), ConfigError> {
    let bytes = text.len();
    if bytes > limit {
        return Err(ConfigError::TooLarge { bytes, limit });
    }
    let mut value: Value =
        serde_json::from_str(text).map_err(|error| ConfigError::NotJson(error.to_string()))?;
    let unknown = shape::conform(&mut value, &shape::CONFIG);
    let config = serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let message = error.into_inner().to_string();
        ConfigError::Invalid(vec![Problem::new(path, message)])
    })?;
    Ok((config, unknown))
}

/// The most characters of the name of an Integration stream: release tags have 18 more, and are names of Jobs and
/// values of labels, which have up to 63.
const MAX_INTEGRATION: usize = 45;
/// The most characters of the name of a Stable stream, which ends the name of an annotation.
const MAX_STABLE: usize = 56;
/// The most characters that a prefix of mirrors may have.
const MAX_MIRROR_PREFIX: usize = 200;
const NAME_OF_INTEGRATION: &str = "release tags, Jobs and labels begin with it: it has up to 45 lowercase letters, \
                                   digits, dots and dashes, with a letter or digit at both ends";
const NAME_OF_STABLE: &str = "it is part of the name of an annotation: it has up to 56 letters, digits, dots, dashes \
                              and underscores, with a letter or digit at both ends";

/// Whether releases, and the objects that belong to them, may be called after the stream.
fn may_be_name(config: &ReleaseConfig) -> bool {
    let name = &config.name;
    if !config.is_stable() {
        return is_subdomain(name, MAX_INTEGRATION);
    }
    let ends = [name.chars().next(), name.chars().next_back()];
    is_tag(name)
        && name.len() <= MAX_STABLE
        && ends.iter().flatten().all(char::is_ascii_alphanumeric)
}

/// Whether `text` may be the name of an object of Kubernetes.
fn is_subdomain(text: &str, most: usize) -> bool {
    let is_inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    text.len() <= most
        && text.split('.').all(|part| {
            let bytes = part.as_bytes();
            !bytes.is_empty()
                && bytes.iter().all(is_inner)
                && bytes.first() != Some(&b'-')
                && bytes.last() != Some(&b'-')
        })
}

/// What keeps a controller from using a configuration.
pub(super) fn problems(config: &ReleaseConfig) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut require = |holds: bool, path: String, message: &str| {
        if !holds {
            problems.push(Problem::new(path, message));
        }
    };
    require(
        !config.name.is_empty(),
        "name".into(),
        "a stream has a name",
    );
    if !config.name.is_empty() {
        let message = if config.is_stable() {
            NAME_OF_STABLE
        } else {
            NAME_OF_INTEGRATION
        };
        require(may_be_name(config), "name".into(), message);
    }
    // The rest of the name of a mirror begins with a dash.
    let prefix = format!("{}-0", config.mirror_prefix);
    require(
        config.mirror_prefix.is_empty() || is_subdomain(&prefix, MAX_MIRROR_PREFIX),
        "mirrorPrefix".into(),
        "it begins the names of ImageStreams: lowercase letters, digits, dots and dashes",
    );
    let has_target = config.is_stable() || !config.to.is_empty();
    require(
        has_target,
        "to".into(),
        "a stream that is not Stable names its target ImageStream",
    );
    verifications(config, &mut problems);
    publications(config, &mut problems);
    problems
}

fn verifications(config: &ReleaseConfig, problems: &mut Vec<Problem>) {
    let mut require = |holds: bool, path: String, message: &str| {
        if !holds {
            problems.push(Problem::new(path, message));
        }
    };
    for (key, one) in &config.verify {
        require(
            !key.is_empty(),
            "verify".into(),
            "a verification has a name",
        );
        let known = UPGRADE_FROM.contains(&one.upgrade_from.as_str());
        let message = "it is Previous, PreviousMinus1, PreviousPatch, PreviousMinor or absent";
        require(known, format!("verify.{key}.upgradeFrom"), message);
        let named = one.prow_job.as_ref().is_none_or(|job| !job.name.is_empty());
        require(
            named,
            format!("verify.{key}.prowJob.name"),
            "a Prow job has a name",
        );
        let path = format!("verify.{key}.maxRetries");
        require(one.max_retries >= 0, path, "it is not negative");
        let count = one
            .aggregated_prow_job
            .as_ref()
            .map_or(1, |it| it.analysis_job_count);
        let path = format!("verify.{key}.aggregatedProwJob.analysisJobCount");
        require((1..=100).contains(&count), path, "it is from 1 to 100");
    }
}

fn publications(config: &ReleaseConfig, problems: &mut Vec<Problem>) {
    let mut require = |holds: bool, path: String, message: &str| {
        if !holds {
            problems.push(Problem::new(path, message));
        }
    };
    for (key, one) in &config.publish {
        require(!key.is_empty(), "publish".into(), "an entry has a name");
        let tag = one.tag_ref.as_ref().is_none_or(|it| !it.name.is_empty());
        require(
            tag,
            format!("publish.{key}.tagRef.name"),
            "a tag has a name",
        );
        let good = one
            .tag_ref
            .as_ref()
            .is_none_or(|it| it.name.is_empty() || is_tag(&it.name));
        require(
            good,
            format!("publish.{key}.tagRef.name"),
            "a tag has up to 128 letters, digits, _, . and -",
        );
        let stream = one
            .image_stream_ref
            .as_ref()
            .is_none_or(|it| !it.name.is_empty());
        let path = format!("publish.{key}.imageStreamRef.name");
        require(stream, path, "an ImageStream has a name");
    }
}
