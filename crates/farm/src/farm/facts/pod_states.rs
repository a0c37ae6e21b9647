//! What is kept of pods: a farm has many, and what they run is in their workload.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodSpec, PodStatus};
use neap_kit::watch::Trim;

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
