//! Creation and deletion of pods, with their Events.

use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::{Resource, ResourceExt};
use neap_kit::{apply::Error, builder::Tools, event::EventDraft, planted};

use super::{CreateResults, error_message};

/// Creates pods for `owner` in batches of 1, 2, 4 and so on. Where one cannot be created the others
/// cannot either, and a small first batch shows that before all of them are requested.
pub(crate) async fn create_pods<K>(
    tools: &Tools,
    owner: &K,
    pods: &[Pod],
) -> Result<CreateResults, Error>
where
    K: Resource<DynamicType = ()>,
{
    let (mut left, mut together, mut all) = (pods, 1, Vec::new());
    while !left.is_empty() && all.iter().all(Result::is_ok) {
        let (now, later) = left.split_at(together.min(left.len()));
        all.extend(join_all(now.iter().map(|pod| tools.writer.create(pod))).await);
        (left, together) = (later, together * 2);
    }
    // Events are recorded last, so that the pods do not wait for them.
    let (mut sum, mut failed) = (CreateResults::default(), None);
    for (made, pod) in all.into_iter().zip(pods) {
        planted!(RefusalToldWhole => if made.is_err() {
            let message = format!("Error creating: {:?}", pod.spec);
            tools.record(owner, &EventDraft::warning("FailedCreate", message)).await;
        });
        match created(tools, owner, made).await {
            Ok(made) => sum.add(pod, made.as_ref()),
            Err(_) if planted!(MadeOrNot) => {}
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    failed.map_or(Ok(sum), Err)
}

/// Records the Event for the result of a create.
async fn created<K>(
    tools: &Tools,
    owner: &K,
    made: Result<Option<Pod>, Error>,
) -> Result<Option<Pod>, Error>
where
    K: Resource<DynamicType = ()>,
{
    let event = match &made {
        Ok(None) => return Ok(None),
        Ok(Some(pod)) => EventDraft::normal(
            "SuccessfulCreate",
            format!("Created pod: {}", pod.name_any()),
        ),
        Err(error) => {
            planted!(RefusalPanics => unreachable!("no create is ever refused"));
            EventDraft::warning(
                "FailedCreate",
                format!("Error creating: {}", error_message(error)),
            )
        }
    };
    tools.record(owner, &event).await;
    made
}

pub(crate) async fn delete_pod<K>(tools: &Tools, owner: &K, pod: &Pod) -> Result<(), Error>
where
    K: Resource<DynamicType = ()>,
{
    let ended = tools.writer.remove(pod, None).await;
    planted!(EndedOrNot => return Ok(()));
    ended?;
    let message = format!("Deleted pod: {}", pod.name_any());
    tools
        .record(owner, &EventDraft::normal("SuccessfulDelete", message))
        .await;
    Ok(())
}
