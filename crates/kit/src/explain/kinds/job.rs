//! Jobs and CronJobs.

use serde_json::Value;

use super::{Assessment, assess_pods, count, count_of, pods_of};
use crate::explain::{Facts, Verdict, conditions::ConditionSummary};

pub(super) fn assess(facts: &Facts, job: &Value) -> Assessment {
    let mut assessment = Assessment::new(&[
        "Failed",
        "FailureTarget",
        "Complete",
        "SuccessCriteriaMet",
        "Suspended",
    ]);
    let conditions = ConditionSummary::of(job);
    let holds = |kind: &str| {
        let mut all = conditions.iter();
        all.find(|condition| condition.type_ == kind && condition.status == "True")
    };
    let pods = pods_of(job, &facts.related);
    if holds("Complete").is_some() {
        assessment.add_reason(Verdict::Healthy, "it is complete");
    } else if let Some(failed) = holds("Failed") {
        let ConditionSummary {
            reason, message, ..
        } = failed;
        assess_pods(facts, &pods, &mut assessment);
        assessment.add_reason(
            Verdict::Degraded,
            format!("it failed ({reason}): {message}"),
        );
        assessment.add_advice("Fix what made its pods fail, then delete the job and create it again: a failed job is not restarted.");
    } else if job["spec"]["suspend"] == true {
        assessment.add_reason(
            Verdict::Healthy,
            "it is suspended: nothing runs until it is resumed",
        );
    } else {
        let done = count(job, "succeeded");
        let wanted = job["spec"]["completions"].as_i64();
        let wanted = wanted.map_or(String::new(), |wanted| format!(" of {wanted}"));
        let (active, failed) = (count(job, "active"), count(job, "failed"));
        let active = count_of(active, "pod");
        let why = format!("{active} active, {done}{wanted} succeeded, {failed} failed");
        assess_pods(facts, &pods, &mut assessment);
        assessment.add_reason(Verdict::Progressing, why);
    }
    assessment
}

pub(super) fn assess_cron(cron: &Value) -> Assessment {
    let mut assessment = Assessment::new(&[]);
    if cron["spec"]["suspend"] == true {
        assessment.add_reason(
            Verdict::Healthy,
            "it is suspended: no job is created until it is resumed",
        );
    }
    assessment
}
