//! A service that may sleep, as an object.

use jiff::Timestamp;
use kube::CustomResource;
use neap_kit::schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ElastiServiceStatus, ProbeResponse, Trigger};

/// Which service may sleep, and when.
#[derive(CustomResource, Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "elasti.truefoundry.com",
    version = "v1alpha1",
    kind = "ElastiService",
    plural = "elastiservices",
    doc = "A service that sleeps at zero while nobody asks for it, and wakes on the first connection.",
    namespaced,
    status = "ElastiServiceStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Service","type":"string","jsonPath":".spec.service"}"#,
    printcolumn = r#"{"name":"Mode","type":"string","jsonPath":".status.mode","description":"proxy: resolvers answer for it; serve: they are out of the way"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Last Wake","type":"date","jsonPath":".status.lastWake.time"}"#,
    printcolumn = r#"{"name":"Saved","type":"integer","jsonPath":".status.savedReplicaSeconds","priority":1,"description":"Seconds of a replica that did not run"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ElastiServiceSpec {
    /// The Service that users know, in the same namespace. It is never edited.
    pub service: String,
    /// What runs behind it.
    pub scale_target_ref: ScaleTarget,
    /// How many replicas it wakes to; one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub min_target_replicas: Option<i32>,
    /// So many seconds nobody must have asked for it before it sleeps.
    #[serde(default = "cooldown")]
    #[schemars(range(min = 0, max = 604_800))]
    pub cooldown_period: Option<i32>,
    /// What says that nobody asks for it. All must say so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<Trigger>,
    /// Who else scales it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscaler: Option<Autoscaler>,
    /// When it may sleep; always if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled_period: Option<EnabledPeriod>,
    /// What is answered while it sleeps without waking it, such as health checks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub probe_response: Vec<ProbeResponse>,
    /// What is spoken on its ports, where neither `appProtocol` nor the port's name says so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<Port>,
    /// It does not sleep before this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub keep_awake_until: Option<Timestamp>,
    /// ElastiServices of the same namespace that are woken with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<String>,
    /// Only tells when it would sleep and what that would save.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observe_only: bool,
    /// How much is held while it wakes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// So many seconds a request is held at most; as long as the resolver is told to if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400))]
    pub deadline_seconds: Option<i32>,
    /// Browsers get a page that waits in place of a request that is held.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waiting_page: bool,
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the field may be absent in what is read"
)]
fn cooldown() -> Option<i32> {
    Some(900)
}

/// What is scaled: anything with a scale subresource.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScaleTarget {
    /// Its group and version, such as `apps/v1`.
    pub api_version: String,
    /// Its kind; `deployments` and `rollouts` are old spellings of Deployment and Rollout.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// Who scales between one and many.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Autoscaler {
    /// What it is.
    #[serde(rename = "type")]
    pub kind: AutoscalerKind,
    /// The name of the ScaledObject or HorizontalPodAutoscaler, in the same namespace.
    pub name: String,
}

/// Kinds of autoscalers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AutoscalerKind {
    /// A HorizontalPodAutoscaler: does nothing at zero replicas, so it is left alone.
    #[default]
    Hpa,
    /// A KEDA ScaledObject: paused while the service sleeps.
    Keda,
}

/// When a service may sleep.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnabledPeriod {
    /// When the window opens, as five fields of cron.
    #[serde(default = "midnight")]
    pub schedule: String,
    /// How long it stays open, such as `12h`.
    #[serde(default = "day")]
    pub duration: String,
    /// Whose time of day the schedule means, such as `Europe/Berlin`; UTC if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
}

fn midnight() -> String {
    "0 0 * * *".to_owned()
}

fn day() -> String {
    "24h".to_owned()
}

/// What is spoken on a port.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Port {
    /// The number of the Service's port.
    pub port: i32,
    /// What is spoken there.
    #[serde(default)]
    pub protocol: Protocol,
    /// Whoever connects and closes without a byte does not wake the service.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignore_empty: bool,
}

/// How much a resolver understands of what it carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Protocol {
    /// Bytes. The service wakes when somebody connects, so that servers may speak first.
    #[default]
    Tcp,
    /// HTTP/1.1 or HTTP/2 without TLS, as the client chooses.
    Http,
    /// TLS, which is passed through; the service wakes with the first hello.
    Tls,
}

/// How much is held while a service wakes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Queue {
    /// So many requests or connections at most, in each resolver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub requests: Option<i32>,
    /// So many bytes of them at most, in each resolver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub bytes: Option<i64>,
    /// So many are sent to each pod at a time when they are let go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub per_pod: Option<i32>,
}
