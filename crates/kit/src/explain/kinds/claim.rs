//! PersistentVolumeClaims.

use serde_json::Value;

use super::{Assessment, name};
use crate::explain::{Facts, Verdict};

/// The annotation of the default storage class.
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

pub(super) fn assess(facts: &Facts, claim: &Value) -> Assessment {
    let mut assessment = Assessment::new(&[]);
    match claim["status"]["phase"].as_str() {
        Some("Bound") => {}
        Some("Lost") => {
            let volume = claim["spec"]["volumeName"].as_str().unwrap_or_default();
            assessment.add_reason(
                Verdict::Degraded,
                format!("its volume {volume} is lost, with its data"),
            );
            assessment.add_advice("Restore the data, and create the claim again.");
        }
        _ => pending(facts, claim, &mut assessment),
    }
    assessment
}

fn pending(facts: &Facts, claim: &Value, assessment: &mut Assessment) {
    let around = facts.related.iter();
    let mut classes = around.filter(|one| one["kind"] == "StorageClass");
    let wanted = claim["spec"]["storageClassName"].as_str();
    let class = match wanted {
        Some(wanted) => classes.find(|class| name(class) == wanted),
        None => classes.find(|class| class["metadata"]["annotations"][DEFAULT_CLASS] == "true"),
    };
    match (wanted, class) {
        (Some(""), _) => {
            assessment.add_reason(
                Verdict::Degraded,
                "it waits for a matching volume without a storage class, and there is none",
            );
            assessment.add_advice("Create a matching PersistentVolume, or set storageClassName.");
        }
        (_, None) if !facts.can_read("StorageClass") => {
            let why =
                "it waits for its volume; the reason is unknown: you may not read StorageClasses";
            assessment.add_reason(Verdict::Progressing, why);
        }
        (None, None) => {
            assessment.add_reason(
                Verdict::Degraded,
                "it names no storage class, and there is no default",
            );
            assessment.add_advice("Set storageClassName, or make a storage class the default.");
        }
        (Some(wanted), None) => {
            assessment.add_reason(
                Verdict::Degraded,
                format!("there is no storage class {wanted}"),
            );
            assessment
                .add_advice("Correct storageClassName, or install the provisioner of that class.");
        }
        (_, Some(class)) if class["volumeBindingMode"] == "WaitForFirstConsumer" => {
            assessment.add_reason(
                Verdict::Progressing,
                "its volume is provisioned once a pod that uses it is scheduled",
            );
        }
        (_, Some(class)) => {
            let provisioner = class["provisioner"].as_str().unwrap_or_default();
            assessment.add_reason(
                Verdict::Progressing,
                format!("it waits for {provisioner} to provision its volume"),
            );
        }
    }
}
