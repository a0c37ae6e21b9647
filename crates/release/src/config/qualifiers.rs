//! Release qualifiers: what a release is good for, as decided by jobs or by teams.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Problem;

/// One qualifier: in the global file its definition, at a job what differs there.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ReleaseQualifier {
    /// Whether it is in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Whether a team decides it and not a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<bool>,
    /// The name of its badge.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub badge_name: String,
    /// One line about it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// More about it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// When its badge is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_badge_status: Option<BadgeStatus>,
    /// What it forbids when it fails. An empty list at a job clears the global one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_labels: Option<Vec<String>>,
    /// Who is told when it fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notifications: Option<Notifications>,
}

/// When a badge is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum BadgeStatus {
    /// Always.
    Yes,
    /// Never.
    No,
    /// When the qualifier passes.
    OnSuccess,
    /// When the qualifier fails.
    OnFailure,
}

/// Who is told when a qualifier fails.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Notifications {
    /// Issues in Jira.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jira: Option<JiraSettings>,
}

/// Issues in Jira.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct JiraSettings {
    /// The project.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub project: String,
    /// The component.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub component: String,
    /// Who works on it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub assignee: String,
    /// The title.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// The text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// What belongs together.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub thread: String,
    /// When an issue is opened or raised.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub escalations: Vec<Escalation>,
}

/// When an issue is opened or raised.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Escalation {
    /// Its name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// After this many failures,
    #[serde(skip_serializing_if = "super::is_zero")]
    pub failures: i32,
    /// among this many runs,
    #[serde(skip_serializing_if = "super::is_zero")]
    pub over_last_runs: i32,
    /// or below this share of passes,
    #[serde(skip_serializing_if = "super::is_zero")]
    pub pass_percentage: i32,
    /// within this time.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub over_period: String,
    /// The priority of the issue.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub priority: String,
    /// Who is mentioned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mentions: Vec<String>,
    /// Who is asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needs_info: Vec<String>,
}

impl ReleaseQualifier {
    /// This global qualifier with the settings of a job, which win where they say something.
    pub fn merged(&self, job: &Self) -> Self {
        Self {
            enabled: job.enabled.or(self.enabled),
            approval: job.approval.or(self.approval),
            badge_name: text(&self.badge_name, &job.badge_name),
            summary: text(&self.summary, &job.summary),
            description: text(&self.description, &job.description),
            payload_badge_status: job.payload_badge_status.or(self.payload_badge_status),
            failure_labels: job
                .failure_labels
                .clone()
                .or_else(|| self.failure_labels.clone()),
            notifications: match (&self.notifications, &job.notifications) {
                (Some(global), Some(job)) => Some(global.merged(job)),
                (global, job) => job.clone().or_else(|| global.clone()),
            },
        }
    }

    /// What is wrong with it, each with the path below `path`.
    pub fn problems(&self, path: &str) -> Vec<Problem> {
        let mut problems = Vec::new();
        let approval = self.approval == Some(true);
        if approval && self.failure_labels.is_some() {
            let at = format!("{path}.failureLabels");
            problems.push(Problem::new(
                at,
                "a qualifier with approval has no failure labels",
            ));
        }
        if approval && self.notifications.is_some() {
            let at = format!("{path}.notifications");
            problems.push(Problem::new(
                at,
                "a qualifier with approval has no notifications",
            ));
        }
        let jira = self.notifications.as_ref().and_then(|it| it.jira.as_ref());
        let mut names = BTreeSet::new();
        for (at, one) in jira.iter().flat_map(|jira| &jira.escalations).enumerate() {
            let path = format!("{path}.notifications.jira.escalations[{at}]");
            if one.name.is_empty() {
                problems.push(Problem::new(
                    format!("{path}.name"),
                    "an escalation has a name",
                ));
            } else if !names.insert(&one.name) {
                problems.push(Problem::new(
                    format!("{path}.name"),
                    "two escalations have this name",
                ));
            }
            if one.over_last_runs < 0 {
                let at = format!("{path}.overLastRuns");
                problems.push(Problem::new(at, "it is at least 1"));
            }
            if !(0..=100).contains(&one.pass_percentage) {
                let at = format!("{path}.passPercentage");
                problems.push(Problem::new(at, "it is from 0 to 100"));
            }
            if !one.over_period.is_empty() && !is_period(&one.over_period) {
                let at = format!("{path}.overPeriod");
                problems.push(Problem::new(
                    at,
                    "it is a number of hours, days or weeks, such as 24h, 3d or 2w",
                ));
            }
        }
        problems
    }
}

impl Notifications {
    fn merged(&self, job: &Self) -> Self {
        let jira = match (&self.jira, &job.jira) {
            (Some(global), Some(job)) => Some(global.merged(job)),
            (global, job) => job.clone().or_else(|| global.clone()),
        };
        Self { jira }
    }
}

impl JiraSettings {
    fn merged(&self, job: &Self) -> Self {
        let mut escalations: BTreeMap<&str, &Escalation> = BTreeMap::new();
        for one in self.escalations.iter().chain(&job.escalations) {
            escalations.insert(&one.name, one);
        }
        Self {
            project: text(&self.project, &job.project),
            component: text(&self.component, &job.component),
            assignee: text(&self.assignee, &job.assignee),
            summary: text(&self.summary, &job.summary),
            description: text(&self.description, &job.description),
            thread: text(&self.thread, &job.thread),
            escalations: escalations.into_values().cloned().collect(),
        }
    }
}

fn text(global: &str, job: &str) -> String {
    if job.is_empty() { global } else { job }.to_owned()
}

/// A positive number of hours, days or weeks.
fn is_period(text: &str) -> bool {
    let number = text.strip_suffix(['h', 'd', 'w']).unwrap_or_default();
    number.bytes().all(|byte| byte.is_ascii_digit()) && number.parse().is_ok_and(|it: u32| it > 0)
}

/// The global qualifiers by id.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReleaseQualifiers(pub BTreeMap<String, ReleaseQualifier>);

/// The file of the qualifiers is invalid.
#[derive(Debug, thiserror::Error)]
pub enum QualifierError {
    /// It cannot be read as the settings of qualifiers.
    #[error("the qualifiers cannot be read: {0}")]
    Unreadable(String),
    /// It can, and is not valid.
    #[error("the qualifiers are not valid: {}", super::parse::joined(.0))]
    Invalid(Vec<Problem>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QualifiersFile {
    #[serde(default)]
    qualifiers: BTreeMap<String, ReleaseQualifier>,
}

impl ReleaseQualifiers {
    /// The qualifiers in a file. Unknown fields and an id that is there twice are errors.
    pub fn parse(text: &str) -> Result<Self, QualifierError> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let value: serde_json::Value = serde_saphyr::from_str(text)
            .map_err(|error| QualifierError::Unreadable(error.to_string()))?;
        let mut problems = super::shape::unknown_qualifier_fields(&value);
        let file: QualifiersFile = serde_path_to_error::deserialize(value)
            .map_err(|error| QualifierError::Unreadable(error.to_string()))?;
        for (id, qualifier) in &file.qualifiers {
            problems.extend(qualifier.problems(&format!("qualifiers.{id}")));
        }
        if problems.is_empty() {
            Ok(Self(file.qualifiers))
        } else {
            Err(QualifierError::Invalid(problems))
        }
    }
}
