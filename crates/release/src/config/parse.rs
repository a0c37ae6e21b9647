//! From text to a configuration.

use std::fmt;

use serde_json::Value;

use super::{ReleaseConfig, shape};

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
    let has_target = config.is_stable() || !config.to.is_empty();
    require(
        has_target,
        "to".into(),
        "a stream that is not Stable names its target ImageStream",
    );
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
    for (key, one) in &config.publish {
        require(!key.is_empty(), "publish".into(), "an entry has a name");
        let tag = one.tag_ref.as_ref().is_none_or(|it| !it.name.is_empty());
        require(
            tag,
            format!("publish.{key}.tagRef.name"),
            "a tag has a name",
        );
        let stream = one
            .image_stream_ref
            .as_ref()
            .is_none_or(|it| !it.name.is_empty());
        let path = format!("publish.{key}.imageStreamRef.name");
        require(stream, path, "an ImageStream has a name");
    }
    problems
}
