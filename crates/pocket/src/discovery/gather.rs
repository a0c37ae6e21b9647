//! Groups single resources by group and version.

use super::{ApiResource, DiscoveryVersion, Group, sort};

/// Groups made of `(group, version, resource)`, in the order they are published. Resources keep
/// their order.
pub fn gather<'a>(
    resources: impl IntoIterator<Item = (&'a str, &'a str, ApiResource)>,
) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (group, version, resource) in resources {
        let group = found_or_new(&mut groups, |g| g.name == group, || Group::new(group));
        let versions = &mut group.versions;
        let version = found_or_new(
            versions,
            |v| v.name == version,
            || DiscoveryVersion::new(version),
        );
        version.resources.push(resource);
    }
    sort(&mut groups);
    groups
}

fn found_or_new<T>(
    list: &mut Vec<T>,
    wanted: impl Fn(&T) -> bool,
    make: impl FnOnce() -> T,
) -> &mut T {
    let at = list.iter().position(wanted).unwrap_or_else(|| {
        list.push(make());
        list.len() - 1
    });
    &mut list[at]
}

impl Group {
    fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            versions: Vec::new(),
        }
    }
}

impl DiscoveryVersion {
    fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            resources: Vec::new(),
        }
    }
}
