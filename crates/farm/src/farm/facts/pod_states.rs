//! What is kept of pods: a farm has many, and what they run is in their workload.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodSpec, PodStatus};
use kube::ResourceExt;
use neap_kit::watch::Trim;

use crate::{
    api::ANNOTATION_REVISION,
    farm::drain::{DELETION_COST, PodFacts},
};

/// Of pods only the state is read: what they run is in their workload, and a farm has many.
pub(super) const POD_STATES: Trim<Pod> = Trim {
    name: "pod-states",
    keep: |pod| {
        pod.metadata.owner_references = None;
        let node = pod.spec.take().and_then(|spec| spec.node_name);
        pod.spec = Some(PodSpec {
            node_name: node,
            ..PodSpec::default()
        });
        if let Some(status) = &mut pod.status {
            let states = |list: &mut Option<Vec<ContainerStatus>>| {
                for container in list.iter_mut().flatten() {
                    *container = ContainerStatus {
                        name: std::mem::take(&mut container.name),
                        state: container.state.take(),
                        last_state: container.last_state.take(),
                        ..ContainerStatus::default()
                    };
                }
            };
            let mut init = status.init_container_statuses.take();
            let mut main = status.container_statuses.take();
            states(&mut init);
            states(&mut main);
            *status = PodStatus {
                phase: status.phase.take(),
                conditions: status.conditions.take(),
                init_container_statuses: init,
                container_statuses: main,
                ..PodStatus::default()
            };
            let conditions = status.conditions.iter_mut();
            conditions.for_each(|all| all.retain(|it| it.type_ == "Ready"));
        }
    },
};

/// What a decision depends on.
pub(super) fn pod_facts(pod: &Pod) -> PodFacts {
    let status = pod.status.as_ref();
    let phase = status
        .and_then(|it| it.phase.as_deref())
        .unwrap_or_default();
    let conditions = status.iter().flat_map(|it| it.conditions.iter().flatten());
    let ready = conditions
        .clone()
        .any(|it| it.type_ == "Ready" && it.status == "True");
    let cost = pod.annotations().get(DELETION_COST);
    let created = pod.metadata.creation_timestamp.as_ref();
    PodFacts {
        name: pod.name_any(),
        uid: pod.uid().unwrap_or_default(),
        assigned: pod.spec.as_ref().is_some_and(|it| it.node_name.is_some()),
        running: phase == "Running",
        ready,
        deleting: pod.metadata.deletion_timestamp.is_some(),
        finished: ["Succeeded", "Failed"].contains(&phase),
        created_at: created.map(|it| it.0),
        deletion_cost: cost.and_then(|it| it.parse().ok()).unwrap_or(0),
        revision: pod
            .annotations()
            .get(ANNOTATION_REVISION)
            .cloned()
            .unwrap_or_default(),
        trouble: trouble(pod),
    }
}

/// Why a container does not run.
fn trouble(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let init = status.init_container_statuses.iter().flatten();
    let mut all = init.chain(status.container_statuses.iter().flatten());
    all.find_map(|container| {
        let waiting = container.state.as_ref()?.waiting.as_ref()?;
        let reason = waiting.reason.as_deref()?;
        if ["PodInitializing", "ContainerCreating"].contains(&reason) {
            return None;
        }
        let message = waiting.message.as_deref().unwrap_or_default();
        let ended = container
            .last_state
            .as_ref()
            .and_then(|it| it.terminated.as_ref());
        let code = ended
            .map(|it| format!(" (exit code {})", it.exit_code))
            .unwrap_or_default();
        Some(
            format!("{}: {reason}{code} {message}", container.name)
                .trim_end()
                .to_owned(),
        )
    })
}
