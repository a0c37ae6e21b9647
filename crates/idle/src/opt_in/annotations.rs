//! What can be said on a Service, or on what runs behind it.

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde_json::json;

use crate::{
    api::{
        Autoscaler, AutoscalerKind, ElastiServiceSpec, EnabledPeriod, ScaleTarget, Trigger,
        TriggerKind,
    },
    trigger::duration,
};

/// It may sleep if this is `true`.
pub const ENABLED: &str = "idle.neaptide.dev/enabled";
/// On a Service: what runs behind it, as `Deployment/web` or `argoproj.io/v1alpha1/Rollout/web`.
pub const TARGET: &str = "idle.neaptide.dev/target";
/// On what runs: the Service in front of it.
pub const SERVICE: &str = "idle.neaptide.dev/service";
/// How long nobody must have asked, such as `15m`.
pub const COOLDOWN: &str = "idle.neaptide.dev/cooldown";
/// How many it wakes to.
pub const MIN_REPLICAS: &str = "idle.neaptide.dev/min-replicas";
/// What Prometheus is asked; without it resolvers count requests.
pub const QUERY: &str = "idle.neaptide.dev/query";
/// Below this value nobody asks.
pub const THRESHOLD: &str = "idle.neaptide.dev/threshold";
/// Which Prometheus is asked.
pub const SERVER_ADDRESS: &str = "idle.neaptide.dev/server-address";
/// Who else scales it, as `keda/web` or `hpa/web`.
pub const AUTOSCALER: &str = "idle.neaptide.dev/autoscaler";
/// When it may sleep, as five fields of cron.
pub const SCHEDULE: &str = "idle.neaptide.dev/schedule";
/// For how long, such as `12h`.
pub const SCHEDULE_DURATION: &str = "idle.neaptide.dev/schedule-duration";
/// Whose time of day the schedule means.
pub const TIME_ZONE: &str = "idle.neaptide.dev/time-zone";
/// The ElastiServices that are woken with it, with commas between.
pub const DEPENDENCIES: &str = "idle.neaptide.dev/dependencies";
/// It is only told what would become of it if this is `true`.
pub const OBSERVE_ONLY: &str = "idle.neaptide.dev/observe-only";
/// Browsers get a page that waits if this is `true`.
pub const WAITING_PAGE: &str = "idle.neaptide.dev/waiting-page";

/// All of them.
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
const OURS: &str = "idle.neaptide.dev/";

/// An annotation that says nothing that could be meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bad {
    /// Which one.
    pub annotation: String,
    /// What it says.
    pub value: String,
    /// What it should say.
    pub wants: &'static str,
}

impl fmt::Display for Bad {
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

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Asked {
    /// What runs, if that is said.
    pub target: Option<ScaleTarget>,
    /// The Service, if that is said.
    pub service: Option<String>,
    /// Everything else.
    pub spec: ElastiServiceSpec,
}

/// What annotations ask for; nothing if it is not to sleep.
pub fn read(annotations: &BTreeMap<String, String>) -> Result<Option<Asked>, Bad> {
    let said = Said(annotations);
    if !said.switch(ENABLED)? {
        return Ok(None);
    }
    let mut names = annotations.iter();
    let unknown = names.find(|(name, _)| name.starts_with(OURS) && !ALL.contains(&name.as_str()));
    if let Some((name, value)) = unknown {
        let wants = "nothing: there is no such annotation";
        return Err(bad(name, value, wants));
    }
    let spec = ElastiServiceSpec {
        min_target_replicas: said.number(MIN_REPLICAS)?,
        cooldown_period: Some(said.cooldown()?),
        triggers: vec![said.trigger()?],
        autoscaler: said.autoscaler()?,
        enabled_period: said.period()?,
        dependencies: said.list(DEPENDENCIES),
        observe_only: said.switch(OBSERVE_ONLY)?,
        waiting_page: said.switch(WAITING_PAGE)?,
        ..ElastiServiceSpec::default()
    };
    Ok(Some(Asked {
        target: said.target()?,
        service: said.text(SERVICE).map(str::to_owned),
        spec,
    }))
}

struct Said<'a>(&'a BTreeMap<String, String>);

impl Said<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        let text = self.0.get(name)?.trim();
        Some(text).filter(|text| !text.is_empty())
    }

    fn read<T>(
        &self,
        name: &str,
        wants: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Bad> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        read(text).map(Some).ok_or_else(|| bad(name, text, wants))
    }

    fn switch(&self, name: &str) -> Result<bool, Bad> {
        let read = |text: &str| bool::from_str(text).ok();
        let said = self.read(name, "true or false", read)?;
        Ok(said.unwrap_or(false))
    }

    fn number(&self, name: &str) -> Result<Option<i32>, Bad> {
        let read = |text: &str| text.parse().ok().filter(|number| *number > 0);
        self.read(name, "a whole number from 1 on", read)
    }

    fn cooldown(&self) -> Result<i32, Bad> {
        let read = |text: &str| {
            let cooldown = duration::parse(text).ok()?;
            let seconds = i32::try_from(cooldown.as_secs()).ok()?;
            (1..=604_800).contains(&seconds).then_some(seconds)
        };
        let wants = "a duration from 1s to 168h such as 15m";
        Ok(self.read(COOLDOWN, wants, read)?.unwrap_or(900))
    }

    fn trigger(&self) -> Result<Trigger, Bad> {
        let Some(query) = self.text(QUERY) else {
            for name in [THRESHOLD, SERVER_ADDRESS] {
                if let Some(value) = self.text(name) {
                    return Err(bad(name, value, "something only together with a query"));
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
        let threshold = self.read(THRESHOLD, "a number such as 0.5", number)?;
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

    fn autoscaler(&self) -> Result<Option<Autoscaler>, Bad> {
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
        self.read(AUTOSCALER, "keda/NAME or hpa/NAME", read)
    }

    fn period(&self) -> Result<Option<EnabledPeriod>, Bad> {
        let Some(schedule) = self.text(SCHEDULE) else {
            for name in [SCHEDULE_DURATION, TIME_ZONE] {
                if let Some(value) = self.text(name) {
                    return Err(bad(name, value, "something only together with a schedule"));
                }
            }
            return Ok(None);
        };
        let wants = "a duration such as 12h";
        let lasts = |text: &str| duration::parse(text).ok().map(|_| text.to_owned());
        let lasts = self.read(SCHEDULE_DURATION, wants, lasts)?;
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

    fn target(&self) -> Result<Option<ScaleTarget>, Bad> {
        let wants = "KIND/NAME such as Deployment/web, or GROUP/VERSION/KIND/NAME";
        self.read(TARGET, wants, |text| {
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

fn bad(annotation: &str, value: &str, wants: &'static str) -> Bad {
    Bad {
        annotation: annotation.to_owned(),
        value: value.to_owned(),
        wants,
    }
}
