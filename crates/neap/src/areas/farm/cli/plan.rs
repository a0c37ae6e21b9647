//! `neap farm plan`: what the operator would do next about a farm, without doing it.

use std::{fmt::Write as _, io::Write, sync::Arc};

use neap_farm::{
    api::ComponentStatus,
    farm::{decide::Decision, dry_run::dry_run, facts::FarmFacts},
    jsonnet::EvaluatorProcess,
    queue::GrpcBuildQueue,
};
use neap_kit::key::Key;
use serde_json::{Value, json};

use super::{
    PlanOptions,
    scope::{FarmScope, farm_label, no_such},
};
use crate::{
    exit::{Exit, Failure},
    inspect::print,
};

pub(super) async fn run(options: &PlanOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let scope = FarmScope::named(&options.cluster, options.namespace.as_deref()).await?;
    // Fails clearly where the kinds are not served; a watch would wait for them.
    scope.components().await?;
    let namespace = scope.namespace.clone().unwrap_or_default();
    let program = std::env::current_exe().map_err(|error| failed(&error.to_string()))?;
    let evaluator = Arc::new(EvaluatorProcess::new(program, scope.clock));
    let queue = Arc::new(GrpcBuildQueue::new(scope.clock));
    let key = Key::new(&namespace, farm_label(&options.farm));
    let client = scope.cluster.client.clone();
    let found = dry_run(client, scope.clock, evaluator, queue, &key).await;
    let found = found.map_err(|error| failed(&error.to_string()))?;
    let Some((facts, decision)) = found else {
        return Err(no_such("farm", &options.farm, &namespace));
    };
    match options.output.data() {
        Some(format) => print::data(out, format, "FarmPlan", &as_json(&facts, &decision)),
        None => print::text(out, &as_text(&facts, &decision)),
    }
}

fn as_text(facts: &FarmFacts, decision: &Decision) -> String {
    let mut text = String::new();
    for planned in &decision.components {
        let component = &facts.components[planned.index];
        let ready = planned
            .status
            .conditions
            .iter()
            .find(|it| it.type_ == "Ready");
        let reason = ready.map_or("", |it| &it.reason);
        let _ = writeln!(
            text,
            "{} {}: {reason}",
            component.kind.kind(),
            component.name()
        );
        if let Some(ready) = ready {
            let _ = writeln!(text, "  {}", ready.message.replace('\n', "\n  "));
        }
        if let Some(change) = resharding(&planned.status) {
            let _ = writeln!(text, "  {change}");
        }
        for change in planned.plan.iter() {
            let _ = writeln!(text, "  {change}");
        }
    }
    for drain in &decision.drains {
        let verb = if drain.drained {
            "drain"
        } else {
            "end the drain of"
        };
        let pattern: Vec<_> = drain
            .pattern
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let _ = writeln!(text, "{verb} {} at {}", pattern.join(" "), drain.scheduler);
    }
    text
}

/// The change of the shards that is carried out: one that waits is in the message.
fn resharding(status: &ComponentStatus) -> Option<String> {
    let change = status.storage.as_ref()?.resharding.as_ref()?;
    Some(format!(
        "{} shards become {}; {} % of the keys move",
        change.from.len(),
        change.to.len(),
        change.moved_percent
    ))
}

fn as_json(facts: &FarmFacts, decision: &Decision) -> Value {
    let components: Vec<_> = decision
        .components
        .iter()
        .map(|planned| {
            let component = &facts.components[planned.index];
            let changes: Vec<_> = planned
                .plan
                .iter()
                .map(|change| {
                    json!({
                        "verb": change.verb(),
                        "kind": change.kind().resource.kind,
                        "name": change.key().name(),
                        "reason": change.reason(),
                    })
                })
                .collect();
            json!({
                "kind": component.kind.kind(),
                "name": component.name(),
                "changes": changes,
                "status": planned.status,
            })
        })
        .collect();
    json!({"components": components})
}

fn failed(why: &str) -> Failure {
    Failure::new("NT-FARM-0001", Exit::Failed, "the farm cannot be read", why)
        .remedy("run the command again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_the_shards_is_printed_with_the_share_of_moved_keys() {
        let shards = |count: usize| {
            let shards = (0..count).map(|it| json!({"key": it.to_string(), "weight": 1}));
            shards.collect::<Vec<_>>()
        };
        let change = json!({
            "from": shards(2), "to": shards(3), "stage": "Provisioning", "movedPercent": "33.3",
        });
        let status = json!({"storage": {"shards": shards(2), "resharding": change}});
        let status: ComponentStatus = serde_json::from_value(status).unwrap();
        let expected = "2 shards become 3; 33.3 % of the keys move";
        assert_eq!(resharding(&status).as_deref(), Some(expected));
        assert_eq!(resharding(&ComponentStatus::default()), None);
    }
}
