//! Stopping a node: none of its processes outlives it, and the result of each pod is reported while
//! the API server can still be reached.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use neap_kit::{apply::Error, key::Key};
use nix::sys::signal::Signal;

use super::{NodeReconciler, SHUTDOWN_GRACE};
use crate::node::pod::decide;

/// The time for killed processes to end.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);
/// The timeout for the final reports; the process that stops the node does not wait forever.
const REPORT_TIMEOUT: Duration = Duration::from_secs(1);
/// The number of pods that are reported concurrently.
const CONCURRENT_REPORTS: usize = 16;
/// The number of attempts to report a pod that another client changed, and the delay between them.
const CONFLICT_RETRY: (u32, Duration) = (20, Duration::from_millis(50));

impl NodeReconciler {
    /// Ends all processes, and reports how they ended. Without that, a pod that succeeded would
    /// later count as killed.
    pub(super) async fn shutdown(self: &Arc<Self>) {
        let pods = self.pod_states.mark_stopped_with_node();
        for (signal, grace) in [
            (Signal::SIGTERM, SHUTDOWN_GRACE),
            (Signal::SIGKILL, KILL_TIMEOUT),
        ] {
            self.pod_states.signal_all(signal);
            let ended = self.pod_states.all_ended();
            if self.clock.within(grace, ended).await.is_some() {
                break;
            }
        }
        let reports =
            stream::iter(pods).for_each_concurrent(CONCURRENT_REPORTS, |key| self.report_end(key));
        if self.clock.within(REPORT_TIMEOUT, reports).await.is_none() {
            tracing::warn!("the end of some pods could not be reported in time");
        }
    }

    async fn report_end(&self, key: Key) {
        let (tries, pause) = CONFLICT_RETRY;
        for _ in 0..tries {
            match self.try_report_end(&key).await {
                Err(Error::Conflict(_)) => self.clock.sleep(pause).await,
                Err(error) => {
                    tracing::warn!(pod = %key, %error, "the end of a pod could not be reported");
                    return;
                }
                Ok(()) => return,
            }
        }
    }

    async fn try_report_end(&self, key: &Key) -> Result<(), Error> {
        let found = self.pods.get(key);
        let Some(pod) = found.filter(|pod| !self.pod_states.belongs_to_another(key, pod)) else {
            return Ok(());
        };
        let decision = decide(&self.facts(key, &pod));
        let reported = self.write_status(&pod, &decision).await;
        if decision.gone {
            return self.remove_pod(&pod, reported).await.map(drop);
        }
        reported
    }
}
