//! `inputs/served.txt`: which resources, subresources and loose types are served.

use std::collections::BTreeMap;

use anyhow::bail;

/// What the server serves of the built-in API.
pub(super) struct Served {
    /// Served subresources by `apiVersion/plural`.
    resources: BTreeMap<String, Vec<String>>,
    /// Definitions needed beyond the kinds of the resources.
    pub(super) types: Vec<String>,
}

impl Served {
    /// Reads the file's text.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let mut served = Self {
            resources: BTreeMap::new(),
            types: Vec::new(),
        };
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                [] => {}
                ["type", name] => served.types.push((*name).into()),
                [version, plural, subresources @ ..] => {
                    let subresources = subresources.iter().map(|&s| s.into()).collect();
                    let key = format!("{version}/{plural}");
                    if served.resources.insert(key, subresources).is_some() {
                        bail!("served.txt names {version} {plural} twice");
                    }
                }
                [_] => bail!("served.txt: not an apiVersion and a plural: {line}"),
            }
        }
        Ok(served)
    }

    /// The served subresources of a resource, if it is served at all.
    pub(super) fn subresources(&self, resource: &str) -> Option<&[String]> {
        self.resources.get(resource).map(Vec::as_slice)
    }

    /// `apiVersion/plural` of everything served.
    pub(super) fn resources(&self) -> impl Iterator<Item = &str> {
        self.resources.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_a_resource_and_its_subresources() {
        let served = Served::parse("# no\nv1 pods log status\ntype a.B\n\n").unwrap();
        assert_eq!(served.subresources("v1/pods").unwrap(), ["log", "status"]);
        assert!(served.subresources("v1/nodes").is_none());
        assert_eq!(served.types, ["a.B"]);
    }

    #[test]
    fn a_repeated_or_half_line_is_refused() {
        assert!(Served::parse("v1 pods\nv1 pods log").is_err());
        assert!(Served::parse("v1").is_err());
    }
}
