//! The ElastiService: a Service that may sleep, and when.

use std::time::Duration;

use jiff::Timestamp;
use kube::CustomResource;
use neap_kit::schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ElastiServiceStatus, ProbeResponse, Trigger, TriggerKind};

/// Which Service may sleep, what runs behind it, and when it sleeps.
#[derive(CustomResource, Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "elasti.truefoundry.com",
    version = "v1alpha1",
    kind = "ElastiService",
    plural = "elastiservices",
    doc = "A service that is scaled to zero while it is not in use, and wakes on the first connection.",
    namespaced,
    status = "ElastiServiceStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Service","type":"string","jsonPath":".spec.service"}"#,
    printcolumn = r#"{"name":"Mode","type":"string","jsonPath":".status.mode","description":"proxy: resolvers are in the path; serve: clients reach the pods directly"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Last Wake","type":"date","jsonPath":".status.lastWake.time"}"#,
    printcolumn = r#"{"name":"Saved","type":"integer","jsonPath":".status.savedReplicaSeconds","priority":1,"description":"Replica-seconds that did not run"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ElastiServiceSpec {
    /// The public Service, in the same namespace. It is never edited.
    pub service: String,
    /// The workload behind the Service.
    pub scale_target_ref: ScaleTarget,
    /// The number of replicas it wakes to; one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub min_target_replicas: Option<i32>,
    /// Seconds without a request before it sleeps.
    #[serde(default = "cooldown")]
    #[schemars(range(min = 0, max = 604_800))]
    pub cooldown_period: Option<i32>,
    /// How it is found out whether the service is in use. It sleeps only if all triggers report it idle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<Trigger>,
    /// The autoscaler that scales it while it is awake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscaler: Option<Autoscaler>,
    /// The times at which it may sleep; always if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled_period: Option<EnabledPeriod>,
    /// Requests that resolvers answer themselves while it sleeps, such as health checks, without waking
    /// it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub probe_response: Vec<ProbeResponse>,
    /// The protocols of its ports, where neither `appProtocol` nor the port's name gives them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<Port>,
    /// It does not sleep before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub keep_awake_until: Option<Timestamp>,
    /// Names of ElastiServices of the same namespace that are woken with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<String>,
    /// The operator only reports when the service would sleep and what that would save.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observe_only: bool,
    /// Limits on the requests that resolvers hold while it wakes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// The longest that a request is held, in seconds; the default of the resolver if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400))]
    pub deadline_seconds: Option<i32>,
    /// Browsers get a page that reloads until the service is awake, in place of a request that is held.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waiting_page: bool,
}

/// The cooldown where the spec has none, or one that is not positive.
const DEFAULT_COOLDOWN_SECONDS: i32 = 900;
/// The longest time between two writes of `status.lastScaledUpTime` while a service is in use.
const MAX_ACTIVITY_WRITE_INTERVAL: Duration = Duration::from_mins(1);

impl ElastiServiceSpec {
    /// The time without a request before the service sleeps.
    pub fn cooldown(&self) -> Duration {
        let seconds = self.cooldown_period.filter(|seconds| *seconds > 0);
        let seconds = seconds.unwrap_or(DEFAULT_COOLDOWN_SECONDS);
        Duration::from_secs(seconds.unsigned_abs().into())
    }

    /// The number of replicas it wakes to, at least one.
    pub fn wake_replicas(&self) -> i32 {
        self.min_target_replicas.unwrap_or(1).max(1)
    }

    /// Whether resolvers count its requests, and so stay in the path while it is awake.
    pub fn counts_requests(&self) -> bool {
        let mut triggers = self.triggers.iter();
        triggers.any(|trigger| trigger.kind == TriggerKind::Requests)
    }
}

impl ElastiService {
    /// Whether `status.lastScaledUpTime` is so old that a request at `now` has to be recorded there. The
    /// cooldown is measured from that field, so it is written several times within one cooldown, and not
    /// for every request.
    pub fn activity_write_is_due(&self, now: Timestamp) -> bool {
        let status = self.status.as_ref();
        let recorded = status.and_then(|it| it.last_scaled_up_time);
        let interval = MAX_ACTIVITY_WRITE_INTERVAL.min(self.spec.cooldown() / 4);
        let due = recorded.and_then(|recorded| recorded.checked_add(interval).ok());
        due.is_none_or(|due| now >= due)
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the field is optional, and serde calls this for its default"
)]
fn cooldown() -> Option<i32> {
    Some(DEFAULT_COOLDOWN_SECONDS)
}

/// A reference to an object of any kind that has the scale subresource.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScaleTarget {
    /// Group and version, such as `apps/v1`.
    pub api_version: String,
    /// Kind; `deployments` and `rollouts` are older spellings of Deployment and Rollout.
    pub kind: String,
    /// Name.
    pub name: String,
}

/// A reference to the autoscaler of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Autoscaler {
    /// The kind of autoscaler.
    #[serde(rename = "type")]
    pub kind: AutoscalerKind,
    /// The name of the ScaledObject or HorizontalPodAutoscaler, in the same namespace.
    pub name: String,
}

/// Kinds of autoscalers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AutoscalerKind {
    /// A HorizontalPodAutoscaler. It does nothing at zero replicas, so it is not paused.
    #[default]
    Hpa,
    /// A KEDA ScaledObject. It is paused while the service sleeps.
    Keda,
}

/// A recurring window of time in which a service may sleep.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnabledPeriod {
    /// When the window opens: a cron expression with five fields.
    #[serde(default = "midnight")]
    pub schedule: String,
    /// How long the window stays open, such as `12h`.
    #[serde(default = "day")]
    pub duration: String,
    /// The time zone of the schedule, such as `Europe/Berlin`; UTC if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
}

fn midnight() -> String {
    "0 0 * * *".to_owned()
}

fn day() -> String {
    "24h".to_owned()
}

/// The protocol of a port.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Port {
    /// The number of the Service's port.
    pub port: i32,
    /// The protocol spoken there.
    #[serde(default)]
    pub protocol: Protocol,
    /// A connection that closes without sending a byte does not wake the service.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignore_empty: bool,
}

/// How much of the traffic a resolver parses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Protocol {
    /// Bytes. The service wakes when a client connects, since in some protocols the server speaks first.
    #[default]
    Tcp,
    /// HTTP/1.1, or HTTP/2 without TLS; the client chooses.
    Http,
    /// TLS, passed through without termination. The service wakes with the ClientHello.
    Tls,
}

/// Limits on what one resolver holds while a service wakes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Queue {
    /// The largest number of held requests or connections, in each resolver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub requests: Option<i32>,
    /// The largest number of held bytes, in each resolver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub bytes: Option<i64>,
    /// The largest number of held requests that are sent to each pod at the same time once it is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub per_pod: Option<i32>,
}
