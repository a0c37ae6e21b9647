//! Declarations whose every property is walked through.

mod operation;

use anyhow::{Context, Result};
use neap_trial::{
    Deed, Workload,
    walk::{Schema, Subject},
};
use serde_json::Value;

/// Workloads of which a step makes the declaration, its type, and whether a fresh start must come
/// to the same: a Job and a claim keep what they once got, and a Service without a selector leaves
/// its endpoints to whoever makes them by hand.
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

/// All of them. Custom kinds come first: they are walked through as a whole in every campaign.
pub(crate) fn subjects(workloads: &[Workload]) -> Result<Vec<Subject>> {
    let mut all = vec![operation::subject()?];
    for (name, step, kind, afresh) in BUILT_IN {
        let found = workloads.iter().find(|workload| workload.name == name);
        let Some(workload) = found.cloned() else {
            continue;
        };
        let made = workload.steps.get(step).and_then(|step| step.deeds.first());
        let Some(Deed::Create(object)) = made else {
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

/// No walk is long enough for what comes once a year.
fn rarely(object: &mut Value) {
    if let Some(schedule) = object.pointer_mut("/spec/schedule") {
        *schedule = "0 0 1 7 *".into();
    }
}

/// The one of that name.
pub(crate) fn find<'a>(subjects: &'a [Subject], name: &str) -> Result<&'a Subject> {
    let mut all = subjects.iter();
    all.find(|subject| subject.workload.name == name)
        .with_context(|| format!("nothing called {name} is walked through"))
}
