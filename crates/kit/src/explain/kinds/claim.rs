//! Claims of storage.

use serde_json::Value;

use super::{Judgement, name};
use crate::explain::{Facts, Verdict};

const DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";

pub(super) fn judge(facts: &Facts, claim: &Value) -> Judgement {
    let mut judgement = Judgement::new(&[]);
    match claim["status"]["phase"].as_str() {
        Some("Bound") => {}
        Some("Lost") => {
            let volume = claim["spec"]["volumeName"].as_str().unwrap_or_default();
            judgement.say(
                Verdict::Troubled,
                format!("its volume {volume} is gone, and what was on it"),
            );
            judgement.advise("Restore the data, and make the claim anew.");
        }
        _ => pending(facts, claim, &mut judgement),
    }
    judgement
}

fn pending(facts: &Facts, claim: &Value, judgement: &mut Judgement) {
    let around = facts.around.iter();
    let mut classes = around.filter(|one| one["kind"] == "StorageClass");
    let wanted = claim["spec"]["storageClassName"].as_str();
    let class = match wanted {
        Some(wanted) => classes.find(|class| name(class) == wanted),
        None => classes.find(|class| class["metadata"]["annotations"][DEFAULT] == "true"),
    };
    match (wanted, class) {
        (Some(""), _) => {
            judgement.say(
                Verdict::Troubled,
                "it waits for a volume without a class that fits, and there is none",
            );
            judgement.advise("Make a PersistentVolume that fits, or name a class.");
        }
        (_, None) if !facts.may_see("StorageClass") => {
            let why =
                "it waits for its volume; why cannot be told: you may not read StorageClasses";
            judgement.say(Verdict::OnItsWay, why);
        }
        (None, None) => {
            judgement.say(
                Verdict::Troubled,
                "it names no class of storage, and none is the default",
            );
            judgement.advise("Name a class in storageClassName, or make one the default.");
        }
        (Some(wanted), None) => {
            judgement.say(
                Verdict::Troubled,
                format!("there is no class of storage {wanted}"),
            );
            judgement.advise("Correct storageClassName, or install what makes that class.");
        }
        (_, Some(class)) if class["volumeBindingMode"] == "WaitForFirstConsumer" => {
            judgement.say(
                Verdict::OnItsWay,
                "its volume is made once a pod that uses it has a node",
            );
        }
        (_, Some(class)) => {
            let maker = class["provisioner"].as_str().unwrap_or_default();
            judgement.say(
                Verdict::OnItsWay,
                format!("it waits for {maker} to make its volume"),
            );
        }
    }
}
