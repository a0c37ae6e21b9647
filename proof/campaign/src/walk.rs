//! The declarations whose properties are walked.

mod operation;

use anyhow::{Context, Result};
use neap_trial::{
    UserRequest, Workload,
    walk::{Schema, Subject},
};
use serde_json::Value;

/// The workloads, the step that creates the declaration, its type, and whether the result must
/// equal that of a fresh start. It need not for a Job and a claim, which keep what they once got,
/// and for a Service without a selector, whose endpoints are left to users.
const BUILT_IN: [(&str, usize, &str, bool); 8] = [
    (
        "claim",
        0,
        "io.k8s.api.core.v1.PersistentVolumeClaim",
        false,
    ),
    ("cron-job", 0, "io.k8s.api.batch.v1.CronJob", true),
    ("daemon-set", 0, "io.k8s.api.apps.v1.DaemonSet", true),
    ("deployment", 0, "io.k8s.api.apps.v1.Deployment", true),
    (
        "disruption-budget",
        0,
        "io.k8s.api.policy.v1.PodDisruptionBudget",
        true,
    ),
    ("job", 2, "io.k8s.api.batch.v1.Job", false),
    ("service", 0, "io.k8s.api.core.v1.Service", false),
    ("stateful-set", 0, "io.k8s.api.apps.v1.StatefulSet", false),
];

/// All subjects. Custom kinds come first: they are walked completely in every campaign.
pub(crate) fn subjects(workloads: &[Workload]) -> Result<Vec<Subject>> {
    let mut all = vec![operation::subject()?];
    for (name, step, kind, afresh) in BUILT_IN {
        let found = workloads.iter().find(|workload| workload.name == name);
        let Some(workload) = found.cloned() else {
            continue;
        };
        let made = workload
            .steps
            .get(step)
            .and_then(|step| step.requests.first());
        let Some(UserRequest::Create(object)) = made else {
            anyhow::bail!("{name} makes nothing in step {step}");
        };
        let mut object = object.clone();
        rarely(&mut object);
        all.push(Subject {
            schema: Schema::built_in(kind).map_err(anyhow::Error::msg)?,
            workload,
            object,
            afresh,
            // Data stays where a StatefulSet is told to retain it.
            leaves: (name == "stateful-set").then_some("/persistentvolumeclaims/"),
        });
    }
    Ok(all)
}

/// Once a year: no walk lasts long enough for the schedule to fire.
fn rarely(object: &mut Value) {
    if let Some(schedule) = object.pointer_mut("/spec/schedule") {
        *schedule = "0 0 1 7 *".into();
    }
}

pub(crate) fn find<'a>(subjects: &'a [Subject], name: &str) -> Result<&'a Subject> {
    let mut all = subjects.iter();
    all.find(|subject| subject.workload.name == name)
        .with_context(|| format!("nothing called {name} is walked through"))
}
