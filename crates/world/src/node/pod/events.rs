//! The Events of status changes. Pure.

use k8s_openapi::api::core::v1::{ContainerStateWaiting, ContainerStatus, Pod, PodStatus};
use kube::ResourceExt;
use neap_kit::event::EventDraft;

/// The Events for a change of the status of `pod` from `before` to `after`.
pub fn events(pod: &Pod, before: Option<&PodStatus>, after: &PodStatus) -> Vec<EventDraft> {
    let mut events = Vec::new();
    for status in containers(after) {
        let former = before.and_then(|before| {
            let mut all = containers(before);
            all.find(|former| former.name == status.name)
        });
        if let Some(waits) = waits(status)
            && former.and_then(self::waits) != Some(waits)
        {
            events.extend(of_wait(pod, status, waits));
        }
    }
    if before.and_then(|before| before.reason.as_ref()) != after.reason.as_ref()
        && after.reason.as_deref() == Some("DeadlineExceeded")
    {
        let message = after.message.clone().unwrap_or_default();
        events.push(EventDraft::normal("DeadlineExceeded", message));
    }
    events
}

fn containers(status: &PodStatus) -> impl Iterator<Item = &ContainerStatus> {
    let init = status.init_container_statuses.iter().flatten();
    init.chain(status.container_statuses.iter().flatten())
}

fn waits(status: &ContainerStatus) -> Option<&ContainerStateWaiting> {
    status.state.as_ref()?.waiting.as_ref()
}

fn of_wait(
    pod: &Pod,
    status: &ContainerStatus,
    waits: &ContainerStateWaiting,
) -> Option<EventDraft> {
    let (reason, message) = (waits.reason.as_deref()?, waits.message.as_deref()?);
    match reason {
        // Missing volumes are reported for the whole pod.
        "ContainerCreating" | "PodInitializing" => None,
        "CrashLoopBackOff" => {
            let (name, pod) = (&status.name, pod.name_any());
            let end = status
                .last_state
                .as_ref()
                .and_then(|state| state.terminated.as_ref());
            let ended = end.map_or(String::new(), |end| {
                format!(": it ended with exit code {}", end.exit_code)
            });
            let message =
                format!("Back-off restarting failed container {name} in pod {pod}{ended}");
            Some(EventDraft::warning("BackOff", message))
        }
        _ => Some(EventDraft::warning(
            "Failed",
            format!("Error: {reason}: {message}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn status(waiting: &Value) -> PodStatus {
        let state = json!({"waiting": waiting});
        let main = json!({"name": "main", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state});
        serde_json::from_value(json!({"containerStatuses": [main]})).unwrap()
    }

    fn recorded(before: Option<&PodStatus>, after: &PodStatus) -> Vec<(&'static str, String)> {
        let pod = serde_json::from_value(json!({"metadata": {"name": "p"}})).unwrap();
        let events = events(&pod, before, after).into_iter();
        events.map(|event| (event.reason, event.message)).collect()
    }

    #[test]
    fn a_new_waiting_reason_is_recorded() {
        let mut loops = status(&json!({"reason": "CrashLoopBackOff", "message": "back-off 10s"}));
        let longer = status(&json!({"reason": "CrashLoopBackOff", "message": "back-off 20s"}));
        let back_off = "Back-off restarting failed container main in pod p".to_owned();
        assert_eq!(recorded(None, &loops), [("BackOff", back_off.clone())]);
        assert_eq!(recorded(Some(&loops), &loops), []);
        assert_eq!(
            recorded(Some(&loops), &longer),
            [("BackOff", back_off.clone())]
        );
        let main = &mut loops.container_statuses.as_mut().unwrap()[0];
        let end = json!({"terminated": {"exitCode": 3}});
        main.last_state = serde_json::from_value(end).unwrap();
        let with_code = format!("{back_off}: it ended with exit code 3");
        assert_eq!(recorded(None, &loops), [("BackOff", with_code)]);
        let image =
            status(&json!({"reason": "ErrImageNeverPull", "message": "image \"x\" is not there"}));
        let expected = "Error: ErrImageNeverPull: image \"x\" is not there".to_owned();
        assert_eq!(recorded(None, &image), [("Failed", expected)]);
        let creating = status(&json!({"reason": "ContainerCreating", "message": "volume"}));
        assert_eq!(recorded(None, &creating), []);
    }
}
