//! The end of a node: nothing that it started outlives it, and how each pod ended is said while
//! there is somebody to say it to.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use neap_kit::{apply::Error, key::Key};
use nix::sys::signal::Signal;

use super::{LAST_GRACE, Node};
use crate::node::pod::decide;

/// How long those have to go that were killed.
const KILLED: Duration = Duration::from_secs(1);
/// How long the server has to hear of all of it. Whoever stops the node does not wait for ever.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// So many pods are told of at once.
const AT_ONCE: usize = 16;
/// A pod that somebody else changed is read again after this time, so often.
const READ_AGAIN: (u32, Duration) = (20, Duration::from_millis(50));

impl Node {
    /// Ends all processes, and tells how they ended. Whoever asks later would otherwise have to
    /// guess: a pod that did what it was for would count as one that was killed.
    pub(super) async fn end(self: &Arc<Self>) {
        let pods = self.locals.stop_with_node();
        for (signal, grace) in [(Signal::SIGTERM, LAST_GRACE), (Signal::SIGKILL, KILLED)] {
            self.locals.signal_all(signal);
            let ended = self.locals.all_ended();
            if self.clock.within(grace, ended).await.is_some() {
                break;
            }
        }
        let words = stream::iter(pods).for_each_concurrent(AT_ONCE, |key| self.last_words(key));
        if self.clock.within(LAST_WORDS, words).await.is_none() {
            tracing::warn!("how some pods ended could not be told in time");
        }
    }

    async fn last_words(&self, key: Key) {
        let (tries, pause) = READ_AGAIN;
        for _ in 0..tries {
            match self.try_last_words(&key).await {
                Err(Error::Replaced(_)) => self.clock.sleep(pause).await,
                Err(error) => {
                    tracing::warn!(pod = %key, %error, "how a pod ended could not be told");
                    return;
                }
                Ok(()) => return,
            }
        }
    }

    async fn try_last_words(&self, key: &Key) -> Result<(), Error> {
        let found = self.pods.get(key);
        let Some(pod) = found.filter(|pod| !self.locals.is_of_another(key, pod)) else {
            return Ok(());
        };
        let decision = decide(&self.facts(key, &pod));
        let said = self.say(&pod, &decision).await;
        if decision.gone {
            return self.see_off(&pod, said).await.map(drop);
        }
        said
    }
}
