//! What is worth telling of a pod. Pure.

use k8s_openapi::api::core::v1::{ContainerStateWaiting, ContainerStatus, Pod, PodStatus};
use kube::ResourceExt;
use neap_kit::event::Note;

/// What people should hear of when the status of `pod` turns from `before` to `after`.
pub fn news(pod: &Pod, before: Option<&PodStatus>, after: &PodStatus) -> Vec<Note> {
    let mut news = Vec::new();
    for status in containers(after) {
        let former = before.and_then(|before| {
            let mut all = containers(before);
            all.find(|former| former.name == status.name)
        });
        if let Some(waits) = waits(status)
            && former.and_then(self::waits) != Some(waits)
        {
            news.extend(of_wait(pod, status, waits));
        }
    }
    if before.and_then(|before| before.reason.as_ref()) != after.reason.as_ref()
        && after.reason.as_deref() == Some("DeadlineExceeded")
    {
        let message = after.message.clone().unwrap_or_default();
        news.push(Note::normal("DeadlineExceeded", message));
    }
    news
}

fn containers(status: &PodStatus) -> impl Iterator<Item = &ContainerStatus> {
    let init = status.init_container_statuses.iter().flatten();
    init.chain(status.container_statuses.iter().flatten())
}

fn waits(status: &ContainerStatus) -> Option<&ContainerStateWaiting> {
    status.state.as_ref()?.waiting.as_ref()
}

fn of_wait(pod: &Pod, status: &ContainerStatus, waits: &ContainerStateWaiting) -> Option<Note> {
    let (reason, message) = (waits.reason.as_deref()?, waits.message.as_deref()?);
    match reason {
        // What is not in place is told of the whole pod.
        "ContainerCreating" | "PodInitializing" => None,
        "CrashLoopBackOff" => {
            let (name, pod) = (&status.name, pod.name_any());
            let message = format!("Back-off restarting failed container {name} in pod {pod}");
            Some(Note::warning("BackOff", message))
        }
        _ => Some(Note::warning(
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

    fn told(before: Option<&PodStatus>, after: &PodStatus) -> Vec<(&'static str, String)> {
        let pod = serde_json::from_value(json!({"metadata": {"name": "p"}})).unwrap();
        let news = news(&pod, before, after).into_iter();
        news.map(|note| (note.reason, note.message)).collect()
    }

    #[test]
    fn what_a_container_waits_for_is_told_when_it_is_new() {
        let loops = status(&json!({"reason": "CrashLoopBackOff", "message": "back-off 10s"}));
        let longer = status(&json!({"reason": "CrashLoopBackOff", "message": "back-off 20s"}));
        let back_off = "Back-off restarting failed container main in pod p".to_owned();
        assert_eq!(told(None, &loops), [("BackOff", back_off.clone())]);
        assert_eq!(told(Some(&loops), &loops), []);
        assert_eq!(told(Some(&loops), &longer), [("BackOff", back_off)]);
        let image =
            status(&json!({"reason": "ErrImageNeverPull", "message": "image \"x\" is not there"}));
        let expected = "Error: ErrImageNeverPull: image \"x\" is not there".to_owned();
        assert_eq!(told(None, &image), [("Failed", expected)]);
        let creating = status(&json!({"reason": "ContainerCreating", "message": "volume"}));
        assert_eq!(told(None, &creating), []);
    }
}
