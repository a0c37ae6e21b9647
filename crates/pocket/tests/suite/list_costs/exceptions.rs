//! Lists that are tried longer than others, and lists of which no long one is accepted.

use std::collections::BTreeMap;

/// Lists that clients fill, or whose entries the server compares with each other.
pub(super) const LONG: [&str; 18] = [
    "ClusterRole .rules",
    "Deployment .spec.template.spec.containers",
    "Deployment .spec.template.spec.containers[].env",
    "Deployment .spec.template.spec.topologySpreadConstraints",
    "EndpointSlice .endpoints",
    "NetworkPolicy .spec.ingress",
    "Pod .metadata.finalizers",
    "Pod .metadata.ownerReferences",
    "Pod .spec.containers",
    "Pod .spec.containers[].env",
    "Pod .spec.containers[].ports",
    "Pod .spec.containers[].volumeMounts",
    "Pod .spec.imagePullSecrets",
    "Pod .spec.tolerations",
    "Pod .spec.topologySpreadConstraints",
    "Pod .spec.volumes",
    "RoleBinding .subjects",
    "Service .spec.ports",
];

/// The lists of which no long one is accepted, by kind and path.
pub(super) struct Exceptions(BTreeMap<&'static str, &'static str>);

/// Reads the lists that the server refuses: their entries have a value of their type but not of their
/// meaning, the field may not change, or there may be few entries. Those are judged by the cost of the
/// refusal, which mostly comes after the checks of all entries.
pub(super) fn read() -> Exceptions {
    let lines = include_str!("refused.txt").lines();
    let lines = lines.filter(|line| !line.starts_with('#'));
    Exceptions(lines.map(|line| line.split_once(": ").unwrap()).collect())
}

impl Exceptions {
    pub(super) fn fields(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }

    /// How a field's refused steps differ from those that are known.
    pub(super) fn problem(&self, field: &str, refused: &[&str]) -> Option<String> {
        let known = self.0.get(field).copied().unwrap_or_default();
        let found = match refused.len() {
            7 => "every step".to_owned(),
            _ => refused.join(", "),
        };
        (known != found)
            .then(|| format!("{field}: refused at {found:?}, and refused.txt says {known:?}"))
    }
}
