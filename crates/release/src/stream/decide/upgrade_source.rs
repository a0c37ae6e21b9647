//! The release that an upgrade starts from.

use crate::{
    config::{ReleaseConfig, UpgradeFromRelease},
    stream::facts::{AcceptedRelease, Facts},
    version,
};

/// Where an upgrade starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UpgradeSource {
    pub(super) tag: String,
    pub(super) pull_spec: String,
}

/// Why there is no release to start from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoSource {
    /// No release is there. Later there may be one.
    #[error("{0}")]
    NotThere(String),
    /// The configuration asks for what there will never be.
    #[error("{0}")]
    Unsupported(String),
}

impl NoSource {
    fn not_there(why: impl Into<String>) -> Self {
        Self::NotThere(why.into())
    }

    fn unsupported(why: impl Into<String>) -> Self {
        Self::Unsupported(why.into())
    }
}

/// The stream of bounds that name none.
const DEFAULT_PRERELEASE_STREAM: &str = "4-stable";

/// Which release an upgrade to `tag` starts from; an error says why there is none.
pub(super) fn upgrade_source(
    facts: &Facts,
    config: &ReleaseConfig,
    tag: &str,
    from: &str,
    from_release: Option<&UpgradeFromRelease>,
    default: &str,
) -> Result<UpgradeSource, NoSource> {
    let candidates = match from_release {
        Some(from) => by_release(facts, config, from)?,
        None => by_name(
            facts,
            config,
            tag,
            if from.is_empty() { default } else { from },
        )?,
    };
    // A release is no upgrade to itself.
    let found = candidates
        .into_iter()
        .find(|it| it.tag != tag && !it.pull_spec.is_empty());
    let found = found.ok_or_else(|| NoSource::not_there("no accepted release matches"))?;
    Ok(UpgradeSource {
        tag: found.tag.clone(),
        pull_spec: found.pull_spec.clone(),
    })
}

fn by_name<'a>(
    facts: &'a Facts,
    config: &ReleaseConfig,
    tag: &str,
    from: &str,
) -> Result<Vec<&'a AcceptedRelease>, NoSource> {
    let of_stream = |skip: usize| {
        let mut own: Vec<_> = facts
            .accepted
            .iter()
            .filter(|it| it.stream == config.name && it.tag != tag)
            .collect();
        if config.is_stable() {
            own.sort_by(|a, b| version::newest_first(&a.tag, &b.tag));
        } else {
            own.sort_by(|a, b| b.created.cmp(&a.created).then_with(|| b.tag.cmp(&a.tag)));
        }
        own.into_iter().skip(skip).collect()
    };
    let of_minor = |back: u64| -> Result<Vec<&'a AcceptedRelease>, NoSource> {
        let release = version::parse(tag);
        let release =
            release.ok_or_else(|| NoSource::not_there(format!("{tag} is not a version")))?;
        let minor = release.minor.checked_sub(back);
        let minor =
            minor.ok_or_else(|| NoSource::not_there("there is no earlier minor version"))?;
        let mut stable: Vec<_> = facts
            .accepted
            .iter()
            .filter(|it| it.is_stable && it.tag != tag)
            .filter(|it| {
                version::parse(&it.tag)
                    .is_some_and(|it| it.major == release.major && it.minor == minor)
            })
            .collect();
        stable.sort_by(|a, b| version::newest_first(&a.tag, &b.tag));
        Ok(stable)
    };
    match from {
        "Previous" => Ok(of_stream(0)),
        "PreviousMinus1" => Ok(of_stream(1)),
        "PreviousPatch" | "PreviousMicro" => of_minor(0),
        "PreviousMinor" => of_minor(1),
        other => Err(NoSource::unsupported(format!("{other} names no release"))),
    }
}

fn by_release<'a>(
    facts: &'a Facts,
    config: &ReleaseConfig,
    from: &UpgradeFromRelease,
) -> Result<Vec<&'a AcceptedRelease>, NoSource> {
    if let Some(candidate) = &from.candidate {
        let kind = candidate.stream.as_str();
        let suffix = config
            .to
            .strip_prefix("release-5")
            .or_else(|| config.to.strip_prefix("release"));
        let stream = format!(
            "{}.0-0.{kind}{}",
            candidate.version,
            suffix.unwrap_or_default()
        );
        let mut found: Vec<_> = facts
            .accepted
            .iter()
            .filter(|it| it.stream == stream)
            .collect();
        found.sort_by(|a, b| version::newest_first(&a.tag, &b.tag));
        let skip = usize::try_from(candidate.relative).unwrap_or(0);
        return Ok(found.into_iter().skip(skip).collect());
    }
    if let Some(prerelease) = &from.prerelease {
        let bounds = &prerelease.version_bounds;
        let bound = |name: &str, text: &str| {
            let why = || NoSource::unsupported(format!("version_bounds.{name} is not a version"));
            version::parse(text).ok_or_else(why)
        };
        let lower = bound("lower", &bounds.lower)?;
        let upper = bound("upper", &bounds.upper)?;
        let stream = Some(prerelease.stream.as_str()).filter(|it| !it.is_empty());
        let stream = stream.unwrap_or(DEFAULT_PRERELEASE_STREAM);
        let mut found: Vec<_> = facts
            .accepted
            .iter()
            .filter(|it| it.stream == stream)
            .filter(|it| version::parse(&it.tag).is_some_and(|it| it > lower && it < upper))
            .collect();
        found.sort_by(|a, b| version::newest_first(&a.tag, &b.tag));
        return Ok(found);
    }
    if from.official.is_some() {
        let why =
            "upgradeFromRelease.release needs an update service, which this version does not ask";
        return Err(NoSource::unsupported(why));
    }
    let why = "upgradeFromRelease names no release";
    Err(NoSource::unsupported(why))
}
