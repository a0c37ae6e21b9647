//! A process under trial: it dies and starts again in the middle of everything else.

use std::{sync::Arc, time::Duration};

use kube::{Client, client::retry::RetryPolicy};
use neap_kit::{
    lease::{self, Elector, Leadership, Timings},
    manager::Service,
    process::Process,
    site::Site,
    watch::{Ended, Watches},
};
use neap_pocket::Pocket;
use parking_lot::Mutex;
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::sync::CancellationToken;
use tower::{ServiceBuilder, retry::RetryLayer};

use crate::{
    outside::Outside,
    own::Own,
    scene::Scene,
    seam::{Line, Restart, Seam},
};

/// How long a process takes to start again.
const RESTART: Duration = Duration::from_secs(1);
/// How long a server stays behind that a restarted process reads from.
const STALE: Duration = Duration::from_secs(10);

/// Thrice as patient as in production: what elections cost is renewals, and there is nothing to see in
/// most of them. A Lease whose holder died is taken before a step counts as at rest.
const PATIENT: Timings = Timings {
    duration: Duration::from_secs(45),
    deadline: Duration::from_secs(30),
    retry: Duration::from_secs(9),
};

type Services = Arc<dyn Fn(&Site, &Outside) -> Result<Vec<Service>, Ended> + Send + Sync>;

/// What a process runs.
#[derive(Clone)]
pub(crate) struct Actor {
    pub(crate) name: &'static str,
    pub(crate) services: Services,
    /// The Lease that it stands for, if it has others beside it.
    pub(crate) elected: Option<&'static str>,
}

impl Actor {
    /// Runs it for ever, one life after another. What should not have happened is added to `odd`.
    pub(crate) async fn keep(
        self,
        pocket: Pocket,
        scene: Arc<Scene>,
        odd: Arc<Mutex<Vec<String>>>,
    ) {
        let mut restart = Restart::default();
        for number in 0_u32.. {
            let (death, mut died) = mpsc::channel(1);
            let view = pocket.view(None);
            let late = pocket.service_over(view.clone());
            let own = Arc::new(Own::default());
            scene.lives.lock().push(own.clone());
            let line = Arc::new(Line::new(
                self.name.into(),
                scene.clock,
                view,
                death,
                scene.open.clone(),
                own,
            ));
            if restart.events > 0 {
                line.lag(restart.events, restart.kinds, STALE);
            }
            let seam = Seam::new(pocket.service(), late, line.clone(), scene.clone());
            let outside = Outside::new(line.clone(), scene.clone());
            let mut life = self.live(seam, &outside, number, &line, &scene);
            if let Err(problem) = &mut life {
                odd.lock().push(std::mem::take(problem));
                return;
            }
            let Ok(mut tasks) = life else { return };
            let behind = line.clone();
            tasks.spawn(async move { behind.catch_up_in_time().await });
            let dead = tokio::select! {
                dead = died.recv() => dead,
                ended = tasks.join_next() => {
                    odd.lock().push(format!("a service of {} has ended: {ended:?}", self.name));
                    return;
                }
            };
            restart = dead.unwrap_or_default();
            drop(tasks);
            scene.hold(RESTART).await;
        }
    }

    /// Starts a life; its tasks end with what is returned.
    fn live(
        &self,
        seam: Seam,
        outside: &Outside,
        number: u32,
        line: &Line,
        scene: &Scene,
    ) -> Result<JoinSet<()>, String> {
        let clock = scene.clock;
        let mut tasks = JoinSet::new();
        let stop = CancellationToken::new();
        let bare = Client::new(seam.clone(), "default");
        let leadership = match self.elected {
            None => Leadership::alone(clock),
            Some(lease) => {
                let options = lease::Options {
                    namespace: "kube-system".to_owned(),
                    name: lease.to_owned(),
                    identity: format!("{}-{number}", self.name),
                    timings: PATIENT,
                };
                let elected = Elector::new(bare, options, clock);
                let (elector, leadership) = elected.map_err(|error| error.to_string())?;
                tasks.spawn(elector.run(stop.clone()));
                leadership
            }
        };
        // As a client has it that was made from a kubeconfig.
        let retried = ServiceBuilder::new()
            .layer(RetryLayer::new(RetryPolicy::server_retry()))
            .service(seam);
        let process = Process::default().observed_by(line.own().clone());
        let (watches, watching) = Watches::in_process(clock, process);
        line.own().reads(&watches);
        let site = Site {
            client: Client::new(retried, "default"),
            watches,
            leadership,
            clock,
        };
        let services = (self.services)(&site, outside).map_err(|error| error.to_string())?;
        for service in services {
            tasks.spawn(service.run(stop.clone()));
        }
        tasks.spawn(watching.run(stop));
        Ok(tasks)
    }
}
