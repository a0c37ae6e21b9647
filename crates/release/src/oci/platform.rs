//! The choice of an image from a manifest list.

use oci_spec::image::Descriptor;
use regex::Regex;

use super::manifest::Manifest;

/// Which images of a list are meant.
#[derive(Debug, Clone)]
pub enum PlatformFilter {
    /// All.
    Any,
    /// Those whose `os/architecture[/variant]` matches.
    Matching(Regex),
}

/// Why no single image was chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The pattern is invalid.
    #[error("the platform filter {0:?} is not a regular expression")]
    Pattern(String),
    /// None matches.
    #[error("no image of the manifest list matches the platform; it has {0}")]
    NoMatch(String),
    /// Several match.
    #[error("the manifest list has several images; choose one with --filter-by-os: {0}")]
    Several(String),
}

impl PlatformFilter {
    /// A filter as users write it: `linux/amd64`, or any regular expression.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.is_empty() || text == ".*" {
            return Ok(Self::Any);
        }
        let pattern = Regex::new(text).map_err(|_| Error::Pattern(text.to_owned()))?;
        Ok(Self::Matching(pattern))
    }

    /// The platform that component images are read for.
    pub fn linux_amd64() -> Self {
        Self::parse("^linux/amd64$").unwrap_or(Self::Any)
    }

    /// Whether the image is meant.
    pub fn matches(&self, descriptor: &Descriptor) -> bool {
        match self {
            Self::Any => true,
            Self::Matching(pattern) => pattern.is_match(&platform(descriptor)),
        }
    }

    /// The only image of `list` that is meant.
    pub fn only<'a>(&self, list: &'a Manifest) -> Result<&'a Descriptor, Error> {
        let children = list.descriptors().filter(|child| !is_attestation(child));
        let found: Vec<_> = children.filter(|child| self.matches(child)).collect();
        match found[..] {
            [only] => Ok(only),
            [] => Err(Error::NoMatch(names(list.descriptors()))),
            _ => Err(Error::Several(names(found.into_iter()))),
        }
    }
}

/// `os/architecture[/variant]`.
pub fn platform(descriptor: &Descriptor) -> String {
    let Some(platform) = descriptor.platform() else {
        return "unknown/unknown".to_owned();
    };
    let base = format!("{}/{}", platform.os(), platform.architecture());
    match platform.variant() {
        Some(variant) => format!("{base}/{variant}"),
        None => base,
    }
}

/// Attestations are listed beside the images that they are about.
fn is_attestation(descriptor: &Descriptor) -> bool {
    let annotations = descriptor.annotations().as_ref();
    annotations.is_some_and(|it| it.contains_key("vnd.docker.reference.type"))
}

fn names<'a>(descriptors: impl Iterator<Item = &'a Descriptor>) -> String {
    let names: Vec<_> = descriptors
        .map(|it| format!("{} ({})", platform(it), it.digest()))
        .collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn list(platforms: &[&str]) -> Manifest {
        let manifests: Vec<_> = platforms
            .iter()
            .map(|text| {
                let (os, architecture) = text.split_once('/').unwrap();
                json!({
                    "mediaType": "application/vnd.oci.image.manifest.v1+json", "size": 1,
                    "digest": crate::oci::digest::sha256(text.as_bytes()).to_string(),
                    "platform": {"os": os, "architecture": architecture},
                })
            })
            .collect();
        let list = json!({"schemaVersion": 2, "manifests": manifests}).to_string();
        Manifest::read(list.into(), None, None).unwrap()
    }

    #[test]
    fn one_image_is_chosen_or_the_choice_is_named() {
        let two = list(&["linux/amd64", "linux/arm64"]);
        let only = PlatformFilter::linux_amd64().only(&two).unwrap();
        assert_eq!(platform(only), "linux/amd64");
        let several = PlatformFilter::Any.only(&two).unwrap_err().to_string();
        assert!(several.contains("linux/arm64 (sha256:"), "{several}");
        let none = PlatformFilter::parse("windows").unwrap().only(&two);
        assert!(none.unwrap_err().to_string().contains("linux/amd64"));
        assert!(PlatformFilter::parse("[").is_err());
    }
}
