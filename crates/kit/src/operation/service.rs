//! Carries out the operations of the API.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use super::{JournalError, Objects, Operation, Runner, Script, Standing, Work, story};
use crate::{
    controller::{self, Options},
    key::Key,
    lease::Leadership,
    manager::Service,
    site::Site,
    watch::{Cache, Ended},
};

/// Steps have limits of their own; this one is for those that never wait in between.
const LONGEST: Duration = Duration::from_hours(24);

/// Carries out every operation whose work is that of `script`, while this process leads. `work` says
/// who does the steps of one.
pub fn service<W: Work + 'static>(
    site: &Site,
    script: Script,
    work: impl Fn(&Operation) -> W + Send + Sync + 'static,
) -> Result<Service, Ended> {
    let operations: Cache<Operation> = site.all()?;
    let name = script.kind;
    let options = Options {
        timeout: LONGEST,
        ..Options::new(name)
    };
    let controller = site.controller(options);
    let trigger = controller.trigger();
    operations.follow(move |change| trigger.changed(change.key()));
    let all = Arc::new(All {
        operations: operations.clone(),
        script,
        work: Box::new(work),
        site: site.clone(),
    });
    let known = async move { operations.synced().await };
    Ok(Service::new(name, move |stop| async move {
        let ending = stop.clone();
        let reconcile = move |key| {
            let (all, stop) = (all.clone(), ending.child_token());
            async move { all.carry_out(key, stop).await }
        };
        controller.run_once_known(known, reconcile, stop).await;
    }))
}

struct All<W> {
    operations: Cache<Operation>,
    script: Script,
    work: Box<dyn Fn(&Operation) -> W + Send + Sync>,
    site: Site,
}

impl<W: Work> All<W> {
    async fn carry_out(
        &self,
        key: Key,
        stop: CancellationToken,
    ) -> Result<controller::Outcome, JournalError> {
        let Some(operation) = self.operations.get(&key) else {
            return Ok(controller::Outcome::Gone);
        };
        let leaves = operation.metadata.deletion_timestamp.is_some();
        let over = story::timeline(&operation).is_over();
        if leaves || over || operation.spec.work != self.script.kind {
            return Ok(controller::Outcome::Gone);
        }
        let Site { clock, .. } = self.site;
        let runner = Runner {
            id: &key.to_string(),
            script: &self.script,
            journal: &Objects::new(self.site.hand(self.script.kind), clock),
            work: &(self.work)(&operation),
            clock,
        };
        // Whatever waits, waits without keeping others from being carried out.
        let stands = tokio::select! {
            stands = runner.go_on(&stop) => stands,
            // Whoever takes over goes on with the step; two at once would be in each other's way.
            () = lost(self.site.leadership.clone()) => Ok(Standing::Stopped),
        };
        match stands {
            Ok(Standing::Waits(time)) => Ok(controller::Outcome::Again(time)),
            Ok(Standing::Stopped) => Ok(controller::Outcome::Again(Duration::ZERO)),
            Ok(Standing::Over(_)) | Err(JournalError::Missing) => Ok(controller::Outcome::Gone),
            Err(error) => Err(error),
        }
    }
}

async fn lost(mut leadership: Leadership) {
    if let Ok(term) = leadership.check() {
        leadership.lost(term).await;
    }
}
