//! CronJob (batch/v1).

use serde_json::{Value, json};

use super::{
    Rules, Traits, cron_schedule,
    field_rules::non_negative,
    fields::{fill, filled, flag, is_set, set, text},
    job,
    path::Path,
    warnings::{owner_warnings, template_warnings},
};
use crate::status::Problems;

/// Characters of a CronJob's name, at most: a job's name is its CronJob's plus eleven characters,
/// and pods add to that.
const MAX_NAME_LENGTH: usize = 52;

const SPEC: Path<'_> = Path::At("spec");

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create: |object, _| set(object, "status", json!({})),
    validate,
    warnings: |object| {
        let template = &object["spec"]["jobTemplate"]["spec"]["template"];
        template_warnings(template, "spec.jobTemplate.spec.template")
    },
    first_warnings: owner_warnings,
    traits: Traits {
        generation: true,
        ..Traits::USUAL
    },
    ..Rules::SHAPE_ONLY
};

fn default(object: &mut Value) {
    let Some(spec) = filled(object, "spec") else {
        return;
    };
    fill(spec, "concurrencyPolicy", "Allow");
    fill(spec, "suspend", false);
    fill(spec, "successfulJobsHistoryLimit", 3);
    fill(spec, "failedJobsHistoryLimit", 1);
    if let Some(template) = filled(spec, "jobTemplate") {
        job::default_template(template);
    }
}

fn validate(object: &Value, problems: &mut Problems) {
    let name = text(&object["metadata"], "name");
    if name.len() > MAX_NAME_LENGTH {
        let detail = format!("must be no more than {MAX_NAME_LENGTH} characters");
        problems.invalid("metadata.name", name, detail);
    }
    let spec = &object["spec"];
    let counts = [
        "startingDeadlineSeconds",
        "successfulJobsHistoryLimit",
        "failedJobsHistoryLimit",
    ];
    validate_schedule(spec, problems);
    non_negative(spec, &SPEC, &counts, problems);
    let template = SPEC.field("jobTemplate");
    let path = template.field("spec");
    let inner = &spec["jobTemplate"]["spec"];
    job::validate_spec(inner, &path, problems);
    if is_set(inner, "selector") {
        let detail = "`selector` will be auto-generated";
        problems.invalid(path.field("selector"), inner["selector"].clone(), detail);
    }
    if flag(inner, "manualSelector") {
        problems.not_supported(path.field("manualSelector"), true, &["nil", "false"]);
    }
}

fn validate_schedule(spec: &Value, problems: &mut Problems) {
    let schedule = text(spec, "schedule");
    let path = SPEC.field("schedule");
    if schedule.contains("TZ") {
        let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        problems.invalid(path, schedule, detail);
    } else if !schedule.is_empty()
        && let Err(why) = cron_schedule::check(schedule)
    {
        problems.invalid(path, schedule, why.to_string());
    }
    if let Some(zone) = spec["timeZone"].as_str()
        && let Some(why) = zone_complaint(zone)
    {
        problems.invalid(SPEC.field("timeZone"), zone, why);
    }
}

/// Validates the form of a zone only: whether it exists is known only with a database of zones.
fn zone_complaint(zone: &str) -> Option<&'static str> {
    let part = |part: &str| {
        !part.is_empty()
            && part != ".."
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'+'))
    };
    if zone.is_empty() {
        return Some("timeZone must be nil or non-empty string");
    }
    if zone.eq_ignore_ascii_case("local") {
        return Some(
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
        );
    }
    if !zone.split('/').all(part) {
        return Some("unknown time zone");
    }
    None
}
