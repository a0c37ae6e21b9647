//! The effect of a pod's failure, by the pod failure policy of its Job.

use k8s_openapi::api::{
    batch::v1::{
        JobSpec, PodFailurePolicyOnExitCodesRequirement as ExitCodes,
        PodFailurePolicyOnPodConditionsPattern as Pattern,
    },
    core::v1::{ContainerStatus, Pod},
};
use kube::ResourceExt;

/// The effect of a failure.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FailureAction {
    /// It counts towards the backoff limit.
    Count,
    /// It is not counted.
    Ignore,
    /// The pod's index has failed.
    FailIndex,
    /// The Job has failed, with the message.
    FailJob(String),
}

/// The action of the first rule that matches the pod.
pub(super) fn failure_action(spec: &JobSpec, pod: &Pod) -> FailureAction {
    let rules = spec
        .pod_failure_policy
        .iter()
        .flat_map(|policy| &policy.rules);
    for (index, rule) in rules.enumerate() {
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
            "Ignore" => FailureAction::Ignore,
            "FailIndex" => FailureAction::FailIndex,
            "FailJob" => {
                FailureAction::FailJob(format!("{cause} matching FailJob rule at index {index}"))
            }
            _ => FailureAction::Count,
        };
    }
    FailureAction::Count
}

fn by_code(pod: &Pod, rule: &ExitCodes) -> Option<String> {
    let status = pod.status.as_ref()?;
    let lists = [&status.init_container_statuses, &status.container_statuses];
    let all = lists.into_iter().flat_map(|list| list.iter().flatten());
    let named = |container: &&ContainerStatus| {
        let name = rule.container_name.as_ref();
        name.is_none_or(|name| *name == container.name)
    };
    let mut failed = all.filter(named).filter_map(|container| {
        let code = container.state.as_ref()?.terminated.as_ref()?.exit_code;
        let listed = rule.values.contains(&code);
        let wanted = if rule.operator == "In" {
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

fn by_condition(pod: &Pod, pattern: &Pattern) -> Option<String> {
    let wanted = pattern.status.as_deref().unwrap_or("True");
    let status = pod.status.as_ref()?;
    let mut conditions = status.conditions.iter().flatten();
    let found = conditions.find(|it| it.type_ == pattern.type_ && it.status == wanted)?;
    let namespace = pod.namespace().unwrap_or_default();
    let name = pod.name_any();
    Some(format!(
        "Pod {namespace}/{name} has condition {}",
        found.type_
    ))
}
