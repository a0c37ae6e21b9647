//! Work that ends.

use serde_json::Value;

use super::{Judgement, ailing, count, many, pods_of};
use crate::explain::{Facts, Verdict, said::Said};

pub(super) fn judge(facts: &Facts, job: &Value) -> Judgement {
    let mut judgement = Judgement::new(&[
        "Failed",
        "FailureTarget",
        "Complete",
        "SuccessCriteriaMet",
        "Suspended",
    ]);
    let conditions = Said::of(job);
    let holds = |kind: &str| {
        let mut all = conditions.iter();
        all.find(|said| said.kind == kind && said.status == "True")
    };
    let pods = pods_of(job, &facts.around);
    if holds("Complete").is_some() {
        judgement.say(Verdict::Well, "its work is done");
    } else if let Some(failed) = holds("Failed") {
        let Said {
            reason, message, ..
        } = failed;
        ailing(facts, &pods, &mut judgement);
        judgement.say(
            Verdict::Troubled,
            format!("it failed for good ({reason}): {message}"),
        );
        judgement.advise("Mend what made its pods fail; then delete it and make it again, for a job that failed is not begun anew.");
    } else if job["spec"]["suspend"] == true {
        judgement.say(
            Verdict::Well,
            "it is suspended: nothing runs until it is resumed",
        );
    } else {
        let done = count(job, "succeeded");
        let wanted = job["spec"]["completions"].as_i64();
        let wanted = wanted.map_or(String::new(), |wanted| format!(" of {wanted}"));
        let (active, failed) = (count(job, "active"), count(job, "failed"));
        let active = many(active, "pod");
        let why = format!("{active} at work, {done}{wanted} succeeded, {failed} failed");
        ailing(facts, &pods, &mut judgement);
        judgement.say(Verdict::OnItsWay, why);
    }
    judgement
}

pub(super) fn judge_cron(cron: &Value) -> Judgement {
    let mut judgement = Judgement::new(&[]);
    if cron["spec"]["suspend"] == true {
        judgement.say(
            Verdict::Well,
            "it is suspended: no job is begun until it is resumed",
        );
    }
    judgement
}
