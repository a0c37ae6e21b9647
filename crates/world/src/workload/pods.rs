//! What controllers of pods make and end.

use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::{Resource, ResourceExt};
use neap_kit::{apply::Error, event::Note, planted, wiring::Tools};

use super::{Made, reason};

/// Makes pods for `owner`: one, then two more, then four. Where one cannot be made the others
/// cannot either, and that is found out before all of them have asked.
pub(crate) async fn create_pods<K>(tools: &Tools, owner: &K, pods: &[Pod]) -> Result<Made, Error>
where
    K: Resource<DynamicType = ()>,
{
    let (mut left, mut together, mut all) = (pods, 1, Vec::new());
    while !left.is_empty() && all.iter().all(Result::is_ok) {
        let (now, later) = left.split_at(together.min(left.len()));
        all.extend(join_all(now.iter().map(|pod| tools.hand.create(pod))).await);
        (left, together) = (later, together * 2);
    }
    // Told last: whoever waits for the pods does not wait for the words.
    let (mut sum, mut failed) = (Made::default(), None);
    for (made, pod) in all.into_iter().zip(pods) {
        planted!(RefusalToldWhole => if made.is_err() {
            let message = format!("Error creating: {:?}", pod.spec);
            tools.tell(owner, &Note::warning("FailedCreate", message)).await;
        });
        match created(tools, owner, made).await {
            Ok(made) => sum.add(pod, made.as_ref()),
            Err(_) if planted!(MadeOrNot) => {}
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    failed.map_or(Ok(sum), Err)
}

/// Tells what came of a pod.
async fn created<K>(
    tools: &Tools,
    owner: &K,
    made: Result<Option<Pod>, Error>,
) -> Result<Option<Pod>, Error>
where
    K: Resource<DynamicType = ()>,
{
    let note = match &made {
        Ok(None) => return Ok(None),
        Ok(Some(pod)) => Note::normal(
            "SuccessfulCreate",
            format!("Created pod: {}", pod.name_any()),
        ),
        Err(error) => {
            planted!(RefusalPanics => unreachable!("no create is ever refused"));
            Note::warning("FailedCreate", format!("Error creating: {}", reason(error)))
        }
    };
    tools.tell(owner, &note).await;
    made
}

pub(crate) async fn delete_pod<K>(tools: &Tools, owner: &K, pod: &Pod) -> Result<(), Error>
where
    K: Resource<DynamicType = ()>,
{
    let ended = tools.hand.remove(pod, None).await;
    planted!(EndedOrNot => return Ok(()));
    ended?;
    let message = format!("Deleted pod: {}", pod.name_any());
    tools
        .tell(owner, &Note::normal("SuccessfulDelete", message))
        .await;
    Ok(())
}
