//! The annotations on a Service, or on the workload behind it.

use std::{borrow::Cow, collections::BTreeMap, fmt, str::FromStr};

use neap_kit::{duration, suggest::nearest};
use serde_json::json;

use crate::api::{
    Autoscaler, AutoscalerKind, ElastiServiceSpec, EnabledPeriod, ScaleTarget, Trigger, TriggerKind,
};

/// Whether the service may sleep: `true` or `false`.
pub const ENABLED: &str = "idle.neaptide.dev/enabled";
/// On a Service: the workload behind it, as `Deployment/web` or `argoproj.io/v1alpha1/Rollout/web`.
pub const TARGET: &str = "idle.neaptide.dev/target";
/// On a workload: the Service in front of it.
pub const SERVICE: &str = "idle.neaptide.dev/service";
/// The time without a request before it sleeps, such as `15m`.
pub const COOLDOWN: &str = "idle.neaptide.dev/cooldown";
/// The number of replicas it wakes to.
pub const MIN_REPLICAS: &str = "idle.neaptide.dev/min-replicas";
/// The query to Prometheus; without it, resolvers count requests.
pub const QUERY: &str = "idle.neaptide.dev/query";
/// The service is idle while the value is below this.
pub const THRESHOLD: &str = "idle.neaptide.dev/threshold";
/// The address of Prometheus.
pub const SERVER_ADDRESS: &str = "idle.neaptide.dev/server-address";
/// The autoscaler, as `keda/web` or `hpa/web`.
pub const AUTOSCALER: &str = "idle.neaptide.dev/autoscaler";
/// When it may sleep: a cron expression with five fields.
pub const SCHEDULE: &str = "idle.neaptide.dev/schedule";
/// How long it may sleep from then on, such as `12h`.
pub const SCHEDULE_DURATION: &str = "idle.neaptide.dev/schedule-duration";
/// The time zone of the schedule.
pub const TIME_ZONE: &str = "idle.neaptide.dev/time-zone";
/// The ElastiServices that are woken with it, comma-separated.
pub const DEPENDENCIES: &str = "idle.neaptide.dev/dependencies";
/// Whether the operator only reports what it would do.
pub const OBSERVE_ONLY: &str = "idle.neaptide.dev/observe-only";
/// Whether browsers get a page that reloads until the service is awake.
pub const WAITING_PAGE: &str = "idle.neaptide.dev/waiting-page";

/// All annotations.
pub const ALL: [&str; 15] = [
    ENABLED,
    TARGET,
    SERVICE,
    COOLDOWN,
    MIN_REPLICAS,
    QUERY,
    THRESHOLD,
    SERVER_ADDRESS,
    AUTOSCALER,
    SCHEDULE,
    SCHEDULE_DURATION,
    TIME_ZONE,
    DEPENDENCIES,
    OBSERVE_ONLY,
    WAITING_PAGE,
];
const PREFIX: &str = "idle.neaptide.dev/";

/// An annotation with an invalid value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidAnnotation {
    /// The annotation.
    pub annotation: String,
    /// Its value.
    pub value: String,
    /// A description of a valid value.
    pub wants: Cow<'static, str>,
}

impl fmt::Display for InvalidAnnotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            annotation,
            value,
            wants,
        } = self;
        write!(
            f,
            "metadata.annotations[{annotation}] is {value:?}; set it to {wants}"
        )
    }
}

/// The settings in the annotations of an object.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OptIn {
    /// The workload, if it is named.
    pub target: Option<ScaleTarget>,
    /// The Service, if it is named.
    pub service: Option<String>,
    /// The rest of the spec.
    pub spec: ElastiServiceSpec,
}

/// Parses annotations; none if they do not enable sleep.
pub fn parse(annotations: &BTreeMap<String, String>) -> Result<Option<OptIn>, InvalidAnnotation> {
    let reader = AnnotationReader(annotations);
    if !reader.boolean(ENABLED)? {
        return Ok(None);
    }
    let mut names = annotations.iter();
    let unknown = names.find(|(name, _)| name.starts_with(PREFIX) && !ALL.contains(&name.as_str()));
    if let Some((name, value)) = unknown {
        return Err(InvalidAnnotation {
            annotation: name.clone(),
            value: value.clone(),
            wants: unknown_annotation(name).into(),
        });
    }
    let spec = ElastiServiceSpec {
        min_target_replicas: reader.number(MIN_REPLICAS)?,
        cooldown_period: Some(reader.cooldown()?),
        triggers: vec![reader.trigger()?],
        autoscaler: reader.autoscaler()?,
        enabled_period: reader.period()?,
        dependencies: reader.list(DEPENDENCIES),
        observe_only: reader.boolean(OBSERVE_ONLY)?,
        waiting_page: reader.boolean(WAITING_PAGE)?,
        ..ElastiServiceSpec::default()
    };
    Ok(Some(OptIn {
        target: reader.target()?,
        service: reader.text(SERVICE).map(str::to_owned),
        spec,
    }))
}

/// What to do about an annotation that does not exist.
fn unknown_annotation(name: &str) -> String {
    let own = |name: &'static str| name.strip_prefix(PREFIX).unwrap_or(name);
    let typed = name.strip_prefix(PREFIX).unwrap_or(name);
    let hint = nearest(typed, ALL.map(own)).map_or_else(
        || format!("after {PREFIX} there may be {}", ALL.map(own).join(", ")),
        |near| format!("did you mean {PREFIX}{near}?"),
    );
    format!("nothing: there is no such annotation; {hint}")
}

struct AnnotationReader<'a>(&'a BTreeMap<String, String>);

impl AnnotationReader<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        let text = self.0.get(name)?.trim();
        Some(text).filter(|text| !text.is_empty())
    }

    fn parse<T>(
        &self,
        name: &str,
        wants: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, InvalidAnnotation> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        read(text)
            .map(Some)
            .ok_or_else(|| invalid(name, text, wants))
    }

    fn boolean(&self, name: &str) -> Result<bool, InvalidAnnotation> {
        let read = |text: &str| bool::from_str(text).ok();
        let value = self.parse(name, "true or false", read)?;
        Ok(value.unwrap_or(false))
    }

    fn number(&self, name: &str) -> Result<Option<i32>, InvalidAnnotation> {
        let read = |text: &str| text.parse().ok().filter(|number| *number > 0);
        self.parse(name, "a whole number from 1 on", read)
    }

    fn cooldown(&self) -> Result<i32, InvalidAnnotation> {
        let read = |text: &str| {
            let cooldown = duration::parse(text).ok()?;
            let seconds = i32::try_from(cooldown.as_secs()).ok()?;
            (1..=604_800).contains(&seconds).then_some(seconds)
        };
        let wants = "a duration from 1s to 168h such as 15m";
        Ok(self.parse(COOLDOWN, wants, read)?.unwrap_or(900))
    }

    fn trigger(&self) -> Result<Trigger, InvalidAnnotation> {
        let Some(query) = self.text(QUERY) else {
            for name in [THRESHOLD, SERVER_ADDRESS] {
                if let Some(value) = self.text(name) {
                    return Err(invalid(name, value, "something only together with a query"));
                }
            }
            return Ok(Trigger {
                kind: TriggerKind::Requests,
                metadata: None,
            });
        };
        let number = |text: &str| {
            let number = text.parse().ok().filter(|it: &f64| it.is_finite());
            number.map(|_| text.to_owned())
        };
        let threshold = self.parse(THRESHOLD, "a number such as 0.5", number)?;
        let mut metadata =
            json!({"query": query, "threshold": threshold.unwrap_or("0".to_owned())});
        if let Some(address) = self.text(SERVER_ADDRESS) {
            metadata["serverAddress"] = address.into();
        }
        Ok(Trigger {
            kind: TriggerKind::Prometheus,
            metadata: Some(metadata),
        })
    }

    fn autoscaler(&self) -> Result<Option<Autoscaler>, InvalidAnnotation> {
        let read = |text: &str| {
            let (kind, name) = text.split_once('/')?;
            let kind = match kind.to_ascii_lowercase().as_str() {
                "keda" => AutoscalerKind::Keda,
                "hpa" => AutoscalerKind::Hpa,
                _ => return None,
            };
            let name = name.to_owned();
            Some(Autoscaler { kind, name }).filter(|it| !it.name.is_empty())
        };
        self.parse(AUTOSCALER, "keda/NAME or hpa/NAME", read)
    }

    fn period(&self) -> Result<Option<EnabledPeriod>, InvalidAnnotation> {
        let Some(schedule) = self.text(SCHEDULE) else {
            for name in [SCHEDULE_DURATION, TIME_ZONE] {
                if let Some(value) = self.text(name) {
                    return Err(invalid(
                        name,
                        value,
                        "something only together with a schedule",
                    ));
                }
            }
            return Ok(None);
        };
        let wants = "a duration such as 12h";
        let lasts = |text: &str| duration::parse(text).ok().map(|_| text.to_owned());
        let lasts = self.parse(SCHEDULE_DURATION, wants, lasts)?;
        Ok(Some(EnabledPeriod {
            schedule: schedule.to_owned(),
            duration: lasts.unwrap_or_else(|| "24h".to_owned()),
            time_zone: self.text(TIME_ZONE).map(str::to_owned),
        }))
    }

    fn list(&self, name: &str) -> Vec<String> {
        let parts = self.text(name).unwrap_or_default().split(',');
        let parts = parts.map(str::trim).filter(|part| !part.is_empty());
        parts.map(str::to_owned).collect()
    }

    fn target(&self) -> Result<Option<ScaleTarget>, InvalidAnnotation> {
        let wants = "KIND/NAME such as Deployment/web, or GROUP/VERSION/KIND/NAME";
        self.parse(TARGET, wants, |text| {
            let parts: Vec<_> = text.split('/').collect();
            let (api_version, kind, name) = match parts[..] {
                [kind, name] => ("apps/v1".to_owned(), kind, name),
                [group, version, kind, name] => (format!("{group}/{version}"), kind, name),
                _ => return None,
            };
            let target = ScaleTarget {
                api_version,
                kind: kind.to_owned(),
                name: name.to_owned(),
            };
            Some(target).filter(|_| parts.iter().all(|part| !part.is_empty()))
        })
    }
}

fn invalid(annotation: &str, value: &str, wants: &'static str) -> InvalidAnnotation {
    InvalidAnnotation {
        annotation: annotation.to_owned(),
        value: value.to_owned(),
        wants: wants.into(),
    }
}
