//! Resource ids: one parser for every path and field that contains one.

use std::fmt;

use crate::cloud_error::CloudError;

/// The namespace of the provider, lower case.
pub const NAMESPACE: &str = "microsoft.redhatopenshift";
/// The type of clusters, lower case.
pub const CLUSTER_TYPE: &str = "openshiftclusters";
/// The type of clusters as it is written.
pub const CLUSTER_TYPE_NAME: &str = "Microsoft.RedHatOpenShift/openShiftClusters";

/// The id of a cluster, lower case. Its parts were checked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClusterId {
    /// The subscription.
    pub subscription: String,
    /// The resource group.
    pub group: String,
    /// The name.
    pub name: String,
}

impl ClusterId {
    /// The id with these parts, or the error for the first that cannot be.
    pub fn new(
        subscription: &str,
        group: &str,
        namespace: &str,
        kind: &str,
        name: &str,
    ) -> Result<Self, CloudError> {
        check_subscription(subscription)?;
        check_group(group)?;
        check_type(namespace, kind)?;
        if !is_name(name) {
            return Err(CloudError::bad_request(
                "ResourceNotFound",
                "",
                format!(
                    "The Resource '{namespace}/{kind}/{name}' under resource group '{group}' was not found: its name can have letters, digits, '-', '_', '(', ')' and '.', at most 90, and does not end with '.'."
                ),
            ));
        }
        Ok(Self {
            subscription: subscription.to_ascii_lowercase(),
            group: group.to_ascii_lowercase(),
            name: name.to_ascii_lowercase(),
        })
    }

    /// The id in a text such as `/subscriptions/S/resourceGroups/G/providers/N/T/NAME`.
    pub fn parse(text: &str) -> Option<Self> {
        let parts: Vec<_> = text.split('/').collect();
        let ["", s, subscription, g, group, p, namespace, kind, name] = parts[..] else {
            return None;
        };
        let fixed = s.eq_ignore_ascii_case("subscriptions")
            && g.eq_ignore_ascii_case("resourcegroups")
            && p.eq_ignore_ascii_case("providers");
        fixed.then(|| Self::new(subscription, group, namespace, kind, name).ok())?
    }

    /// The prefix of the keys of all clusters of a subscription, or of one group of it.
    pub fn prefix(subscription: &str, group: Option<&str>) -> String {
        let subscription = subscription.to_ascii_lowercase();
        match group {
            None => format!("/subscriptions/{subscription}/"),
            Some(group) => {
                let group = group.to_ascii_lowercase();
                format!("/subscriptions/{subscription}/resourcegroups/{group}/")
            }
        }
    }
}

/// Lower case, as it is the key of the document.
impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            subscription,
            group,
            name,
        } = self;
        write!(
            f,
            "/subscriptions/{subscription}/resourcegroups/{group}/providers/{NAMESPACE}/{CLUSTER_TYPE}/{name}"
        )
    }
}

/// Refuses what is no subscription id.
pub fn check_subscription(subscription: &str) -> Result<(), CloudError> {
    if is_uuid(subscription) {
        return Ok(());
    }
    Err(CloudError::bad_request(
        "InvalidSubscriptionID",
        "",
        format!("The provided subscription identifier '{subscription}' is malformed or invalid."),
    ))
}

/// Refuses what is no name of a resource group.
pub fn check_group(group: &str) -> Result<(), CloudError> {
    if is_name(group) {
        return Ok(());
    }
    Err(CloudError::bad_request(
        "ResourceGroupNotFound",
        "",
        format!("Resource group '{group}' could not be found: it is no name of a group."),
    ))
}

/// Refuses other namespaces and types.
pub fn check_type(namespace: &str, kind: &str) -> Result<(), CloudError> {
    if !namespace.eq_ignore_ascii_case(NAMESPACE) {
        return Err(CloudError::bad_request(
            "InvalidResourceNamespace",
            "",
            format!("The resource namespace '{namespace}' is invalid."),
        ));
    }
    if !kind.eq_ignore_ascii_case(CLUSTER_TYPE) {
        return Err(CloudError::bad_request(
            "InvalidResourceType",
            "",
            format!(
                "The resource type '{kind}' could not be found in the namespace '{namespace}'."
            ),
        ));
    }
    Ok(())
}

/// Whether it is a name of a resource or of a group.
pub fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_().".contains(c);
    (1..=90).contains(&name.len()) && name.chars().all(allowed) && !name.ends_with('.')
}

/// Whether it is a UUID, as 8-4-4-4-12 hexadecimal digits.
pub fn is_uuid(text: &str) -> bool {
    let groups: Vec<_> = text.split('-').collect();
    let lengths = groups.iter().map(|group| group.len());
    lengths.eq([8, 4, 4, 4, 12])
        && groups
            .iter()
            .all(|group| group.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The id of a resource of the network provider: its subscription, group and names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubnetId {
    /// The subscription.
    pub subscription: String,
    /// The id of the virtual network, lower case.
    pub network: String,
}

impl SubnetId {
    /// The id in `text`, if it is one of a subnet.
    pub fn parse(text: &str) -> Option<Self> {
        let parts: Vec<_> = text.split('/').collect();
        let [
            "",
            subscriptions,
            subscription,
            groups,
            group,
            providers,
            namespace,
            networks,
            network,
            subnets,
            subnet,
        ] = parts[..]
        else {
            return None;
        };
        let same = |part: &str, fixed: &str| part.eq_ignore_ascii_case(fixed);
        let fixed = same(subscriptions, "subscriptions")
            && same(groups, "resourcegroups")
            && same(providers, "providers")
            && same(namespace, "microsoft.network")
            && same(networks, "virtualnetworks")
            && same(subnets, "subnets");
        let named = is_uuid(subscription)
            && is_name(group)
            && is_network_name(network, 64)
            && is_network_name(subnet, 80);
        (fixed && named).then(|| Self {
            subscription: subscription.to_owned(),
            network: parts[..9].join("/").to_ascii_lowercase(),
        })
    }
}

fn is_network_name(name: &str, longest: usize) -> bool {
    let middle = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let starts = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    let ends = name.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    (2..=longest).contains(&name.len()) && starts && ends && name.chars().all(middle)
}

/// The subscription in the id of a disk encryption set, if `text` is one.
pub fn disk_encryption_set(text: &str) -> Option<&str> {
    let parts: Vec<_> = text.split('/').collect();
    let ["", s, subscription, g, group, p, namespace, kind, name] = parts[..] else {
        return None;
    };
    let same = |part: &str, fixed: &str| part.eq_ignore_ascii_case(fixed);
    let fixed = same(s, "subscriptions")
        && same(g, "resourcegroups")
        && same(p, "providers")
        && same(namespace, "microsoft.compute")
        && same(kind, "diskencryptionsets");
    let named = is_uuid(subscription) && is_name(group) && is_network_name_or_one(name);
    (fixed && named).then_some(subscription)
}

fn is_network_name_or_one(name: &str) -> bool {
    name.len() <= 80 && is_name(name)
}

/// Subscription and name in the id of a resource group.
pub fn resource_group(text: &str) -> Option<(&str, &str)> {
    let parts: Vec<_> = text.split('/').collect();
    let ["", s, subscription, g, group] = parts[..] else {
        return None;
    };
    let fixed = s.eq_ignore_ascii_case("subscriptions") && g.eq_ignore_ascii_case("resourcegroups");
    (fixed && is_uuid(subscription) && is_name(group)).then_some((subscription, group))
}

/// Subscription in the id of a user-assigned identity.
pub fn is_user_assigned_identity(text: &str) -> bool {
    let parts: Vec<_> = text.split('/').collect();
    let ["", s, subscription, g, group, p, namespace, kind, name] = parts[..] else {
        return false;
    };
    let same = |part: &str, fixed: &str| part.eq_ignore_ascii_case(fixed);
    same(s, "subscriptions")
        && same(g, "resourcegroups")
        && same(p, "providers")
        && same(namespace, "microsoft.managedidentity")
        && same(kind, "userassignedidentities")
        && is_uuid(subscription)
        && is_name(group)
        && !name.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: &str = "00000000-0000-0000-0000-000000000001";

    #[test]
    fn an_id_is_the_same_in_every_case_and_no_trick_passes() {
        let id = format!(
            "/Subscriptions/{S}/resourceGroups/RG/providers/Microsoft.RedHatOpenShift/openShiftClusters/My"
        );
        let parsed = ClusterId::parse(&id).unwrap();
        assert_eq!(parsed, ClusterId::parse(&id.to_uppercase()).unwrap());
        assert_eq!(ClusterId::parse(&parsed.to_string()), Some(parsed));
        for bad in [
            id.replace("RG", "R/G"),
            id.replace("RG", "R%2FG"),
            id.replace("RG", ".."),
            id.replace("My", "My/x"),
            id.replace("My", "M\u{0443}"),
            id.replace("My", ""),
            id.replace(S, "S"),
            format!("{id}/"),
            format!("/{id}"),
        ] {
            assert_eq!(ClusterId::parse(&bad), None, "{bad}");
        }
    }

    #[test]
    fn subnets_know_their_network() {
        let subnet = |network: &str, subnet: &str| {
            format!(
                "/subscriptions/{S}/resourceGroups/v/providers/Microsoft.Network/virtualNetworks/{network}/subnets/{subnet}"
            )
        };
        let of = |text: &str| SubnetId::parse(text).map(|it| it.network);
        assert_eq!(of(&subnet("Net", "master")), of(&subnet("net", "worker")));
        assert_eq!(of(&subnet("n", "master")), None, "too short");
        assert_eq!(of(&subnet("net", &"x".repeat(81))), None);
    }
}
