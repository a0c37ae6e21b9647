//! Labels.

/// On a ProwJob: it verifies a release.
pub const VERIFY: &str = "release.openshift.io/verify";
/// On a ProwJob: the release tag that it verifies.
pub const PAYLOAD: &str = "release.openshift.io/payload";
/// On a ProwJob that aggregates others: the release tag.
pub const AGGREGATOR: &str = "release.openshift.io/aggregator";
/// On a ProwJob that is aggregated: the release tag.
pub const ANALYSIS: &str = "release.openshift.io/analysis";
/// On a ProwJob: the capability that its build cluster needs.
pub const CAPABILITY: &str = "capability/rce";
/// The value of [`CAPABILITY`].
pub const RCE: &str = "rce";
/// The value of [`VERIFY`].
pub const TRUE: &str = "true";

/// The label of a ReleasePayload with the approval of a team; its value is `Accepted` or `Rejected`.
pub fn approval(team: &str) -> String {
    format!("release.openshift.io/{}_state", team.to_lowercase())
}
