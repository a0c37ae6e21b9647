//! What the failure of a pod means, by the rules of its Job.

use k8s_openapi::api::{
    batch::v1::{
        JobSpec, PodFailurePolicyOnExitCodesRequirement as ExitCodes,
        PodFailurePolicyOnPodConditionsPattern as Pattern,
    },
    core::v1::{ContainerStatus, Pod},
};
use kube::ResourceExt;

/// What follows from a failure.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// One more failure.
    Count,
    /// None at all.
    Ignore,
    /// The pod's index has failed.
    FailIndex,
    /// The Job has failed, and why.
    FailJob(String),
}

/// The first rule that speaks of the pod decides.
pub(super) fn meaning(spec: &JobSpec, pod: &Pod) -> Meaning {
    let rules = spec
        .pod_failure_policy
        .iter()
        .flat_map(|policy| &policy.rules);
    for (place, rule) in rules.enumerate() {
        let by_code = rule
            .on_exit_codes
            .as_ref()
            .and_then(|codes| by_code(pod, codes));
        let mut patterns = rule.on_pod_conditions.iter().flatten();
        let cause = by_code.or_else(|| patterns.find_map(|pattern| by_condition(pod, pattern)));
        let Some(cause) = cause else {
            continue;
        };
        return match rule.action.as_str() {
            "Ignore" => Meaning::Ignore,
            "FailIndex" => Meaning::FailIndex,
            "FailJob" => {
                Meaning::FailJob(format!("{cause} matching FailJob rule at index {place}"))
            }
            _ => Meaning::Count,
        };
    }
    Meaning::Count
}

fn by_code(pod: &Pod, asked: &ExitCodes) -> Option<String> {
    let status = pod.status.as_ref()?;
    let lists = [&status.init_container_statuses, &status.container_statuses];
    let all = lists.into_iter().flat_map(|list| list.iter().flatten());
    let named = |container: &&ContainerStatus| {
        let name = asked.container_name.as_ref();
        name.is_none_or(|name| *name == container.name)
    };
    let mut failed = all.filter(named).filter_map(|container| {
        let code = container.state.as_ref()?.terminated.as_ref()?.exit_code;
        let listed = asked.values.contains(&code);
        let wanted = if asked.operator == "In" {
            listed
        } else {
            !listed
        };
        (code != 0 && wanted).then_some((&container.name, code))
    });
    let (container, code) = failed.next()?;
    let namespace = pod.namespace().unwrap_or_default();
    let name = pod.name_any();
    Some(format!(
        "Container {container} for pod {namespace}/{name} failed with exit code {code}"
    ))
}

fn by_condition(pod: &Pod, asked: &Pattern) -> Option<String> {
    let wanted = asked.status.as_deref().unwrap_or("True");
    let status = pod.status.as_ref()?;
    let mut conditions = status.conditions.iter().flatten();
    let found = conditions.find(|known| known.type_ == asked.type_ && known.status == wanted)?;
    let namespace = pod.namespace().unwrap_or_default();
    let name = pod.name_any();
    Some(format!(
        "Pod {namespace}/{name} has condition {}",
        found.type_
    ))
}
