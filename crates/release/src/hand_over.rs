//! Which controller owns a stream, and how that changes.
//!
//! The original looks for the annotation with the configuration, and for nothing else. A stream whose source
//! names a ConfigMap instead is not a stream to it. So one annotation says who owns a stream: its
//! configuration for the original, the name of the ConfigMap for a controller of this project that was started
//! with `--handed-over-only`.
//!
//! An owner changes in two writes of the same object: the first takes the stream from its owner, the second
//! gives it to the other. In between it has no owner, for long enough that what the first owner has begun is
//! over. A change that was interrupted is finished, or undone, by asking for it again.

#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use crate::{
    api::annotations,
    config::{ANNOTATION_LIMIT, CONFIG_MAP_LIMIT, ConfigError, parse},
    image_stream::api::ImageStream,
};

/// The key of the configuration in a ConfigMap.
pub const CONFIG_KEY: &str = "config.json";

/// A controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The original.
    Original,
    /// A controller of this project.
    Neaptide,
}

/// The next write towards another owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing: it is the owner.
    Done,
    /// Take the stream from its owner. The ConfigMap of this name must have the configuration before, if a text
    /// is given.
    Release {
        /// The name of the ConfigMap.
        map: String,
        /// The configuration to store in it.
        config: Option<String>,
        /// Annotations to set, or to remove.
        annotations: Value,
    },
    /// Give the stream, which has no owner, to the new one.
    Take {
        /// Annotations to set, or to remove.
        annotations: Value,
    },
}

/// The owner cannot change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is the source of no stream.
    #[error("the ImageStream has no release configuration")]
    NoStream,
    /// Both annotations are there.
    #[error(
        "the ImageStream has the annotations {} and {}; remove the one that is not true",
        annotations::CONFIG,
        annotations::CONFIG_REF
    )]
    Both,
    /// The configuration is not valid.
    #[error("the configuration is not valid: {0}")]
    Invalid(String),
    /// The ConfigMap has no configuration.
    #[error("the ConfigMap {0} does not exist or has no key {CONFIG_KEY}")]
    NoConfig(String),
    /// The original reads configurations up to a limit.
    #[error(
        "the configuration has {0} bytes, and OpenShift's release-controller reads at most {ANNOTATION_LIMIT}"
    )]
    TooLarge(usize),
}

/// The next step that makes `to` the owner of the stream of `source`. `stored` is the configuration in the
/// ConfigMap that the source names, if there is one.
pub fn next(source: &ImageStream, stored: Option<&str>, to: Owner) -> Result<Step, Refusal> {
    let config = annotation(source, annotations::CONFIG);
    let map = annotation(source, annotations::CONFIG_REF);
    let moving = annotation(source, annotations::HAND_OVER);
    match (config, map, moving, to) {
        (Some(_), Some(_), ..) => Err(Refusal::Both),
        (Some(_), None, _, Owner::Original) | (None, Some(_), _, Owner::Neaptide) => Ok(Step::Done),
        (Some(text), None, _, Owner::Neaptide) => {
            check(text)?;
            let map = map_name(source);
            Ok(Step::Release {
                annotations: json!({annotations::CONFIG: null, annotations::HAND_OVER: map}),
                config: Some(text.to_owned()),
                map,
            })
        }
        (None, Some(map), _, Owner::Original) => {
            returnable(map, stored)?;
            Ok(Step::Release {
                map: map.to_owned(),
                config: None,
                annotations: json!({annotations::CONFIG_REF: null, annotations::HAND_OVER: map}),
            })
        }
        (None, None, Some(map), Owner::Neaptide) => {
            check(stored.ok_or_else(|| Refusal::NoConfig(map.to_owned()))?)?;
            Ok(Step::Take {
                annotations: json!({annotations::CONFIG_REF: map, annotations::HAND_OVER: null}),
            })
        }
        (None, None, Some(map), Owner::Original) => {
            let text = returnable(map, stored)?;
            Ok(Step::Take {
                annotations: json!({annotations::CONFIG: text, annotations::HAND_OVER: null}),
            })
        }
        (None, None, None, _) => Err(Refusal::NoStream),
    }
}

/// The name of the ConfigMap that a source names, or that its configuration is moved to.
pub fn map_name(source: &ImageStream) -> String {
    let named = annotation(source, annotations::CONFIG_REF)
        .or_else(|| annotation(source, annotations::HAND_OVER));
    let name = source.metadata.name.as_deref().unwrap_or_default();
    named.map_or_else(|| format!("{name}-release-config"), str::to_owned)
}

fn annotation<'a>(source: &'a ImageStream, name: &str) -> Option<&'a str> {
    let all = source.metadata.annotations.as_ref()?;
    all.get(name).map(String::as_str)
}

fn check(text: &str) -> Result<(), Refusal> {
    let parsed: Result<_, ConfigError> = parse(text, CONFIG_MAP_LIMIT);
    parsed
        .map(drop)
        .map_err(|error| Refusal::Invalid(error.to_string()))
}

/// The configuration in a ConfigMap, if the original can read it.
fn returnable<'a>(map: &str, stored: Option<&'a str>) -> Result<&'a str, Refusal> {
    let text = stored.ok_or_else(|| Refusal::NoConfig(map.to_owned()))?;
    check(text)?;
    if text.len() > ANNOTATION_LIMIT {
        return Err(Refusal::TooLarge(text.len()));
    }
    Ok(text)
}
