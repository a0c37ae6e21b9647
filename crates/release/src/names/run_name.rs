//! What the name of a ProwJob says. Only for ProwJobs of the original: those of this controller say in
//! annotations which run they are.

use std::sync::LazyLock;

use regex::Regex;

use crate::version;

/// The parts of the name of a ProwJob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunName {
    /// The major version of the release.
    pub major: u64,
    /// The minor version of the release.
    pub minor: u64,
    /// The kind of stream.
    pub stream: RunStream,
    /// The key of the verification job, or the platform of an upgrade.
    pub job: String,
    /// The number of the retry, or of the analysed run.
    pub attempt: u32,
    /// The version that an upgrade starts from.
    pub upgrade_from: Option<String>,
}

/// The kind of stream that a release is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunStream {
    /// Releases without a prerelease.
    Stable,
    /// Release candidates and their like.
    Candidate,
    /// Others, such as `nightly`.
    Named(String),
}

/// The name is not that of a ProwJob of the original.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunNameError {
    /// It does not begin with a version.
    #[error("{0:?} does not begin with a version")]
    NoVersion(String),
    /// What follows the version has no known form.
    #[error("{0:?} names no job after the version")]
    NoJob(String),
}

const JOB: &str = r"(?P<job>[\w\-.\\]+?)(?:-(?P<count>\d+))?$";

static SHAPES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let shapes = [
        format!(
            r"^[\d-]+\.(?P<stream>okd-scos|okd|\w+)-(?:\w+-)?\d{{4}}-\d{{2}}-\d{{2}}-\d{{6}}-{JOB}"
        ),
        r"^(?:(?P<candidate>[efr]c\.\d+)-)?upgrade-from-(?P<from>\d+\.\d+\.\d+(?:-[efr]c\.\d+)?)-(?P<job>\w+)(?:-(?P<count>\d+))?$".to_owned(),
        format!(r"^(?P<stream>okd-scos|okd)\.(?:[efr]c\.)?\d+-{JOB}"),
        format!(r"^(?P<candidate>ec|rc|fc|okd-scos|okd)\.\d+-{JOB}"),
        format!("^{JOB}"),
    ];
    shapes
        .iter()
        .filter_map(|shape| Regex::new(shape).ok())
        .collect()
});

impl RunName {
    /// Reads the name of a ProwJob.
    pub fn parse(name: &str) -> Result<Self, RunNameError> {
        let no_version = || RunNameError::NoVersion(name.to_owned());
        let version = version::parse(name).ok_or_else(no_version)?;
        let (_, rest) = name
            .split_once('-')
            .ok_or_else(|| RunNameError::NoJob(name.to_owned()))?;
        let found = SHAPES.iter().find_map(|shape| shape.captures(rest));
        let found = found.ok_or_else(|| RunNameError::NoJob(name.to_owned()))?;
        let part = |group: &str| found.name(group).map(|it| it.as_str().to_owned());
        let stream = match (part("stream"), part("candidate")) {
            (Some(stream), _) => RunStream::Named(stream),
            (None, Some(_)) => RunStream::Candidate,
            (None, None) => RunStream::Stable,
        };
        Ok(Self {
            major: version.major,
            minor: version.minor,
            stream,
            job: part("job").unwrap_or_default(),
            attempt: part("count").and_then(|it| it.parse().ok()).unwrap_or(0),
            upgrade_from: part("from"),
        })
    }
}
