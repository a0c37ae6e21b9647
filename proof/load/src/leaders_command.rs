//! The commands for elections: the candidates, and the run that disturbs them.

use std::{env, path::Path, time::Duration};

use anyhow::{Result, ensure};
use neap_load::{
    leaders::{self, ElectionRunOptions, ElectionTally, TimingsPreset, candidate::Candidate},
    stopwatch::Stopwatch,
};

use crate::PaceArg;

/// Time from the last renewal to the next leader, after a kill.
const KILL_TAKEOVER_LIMIT: Duration = Duration::from_secs(16);
/// Time from SIGTERM to the next leader.
const TERM_TAKEOVER_LIMIT: Duration = Duration::from_secs(2);

pub(crate) async fn candidate(kubeconfig: &Path, identity: &str, pace: PaceArg) -> Result<()> {
    let candidate = Candidate {
        kubeconfig: kubeconfig.to_owned(),
        identity: identity.to_owned(),
        timings: TimingsPreset::from(pace).timings(),
    };
    candidate
        .stand(|attempt| println!("{}", attempt.line()))
        .await
}

/// Both parts: many pauses at short timings, some real takeovers at default timings.
pub(crate) async fn leaders(neap: &Path, stops: usize, takeovers: usize, seed: u64) -> Result<()> {
    println!(
        "seed {seed}: {stops} stops at short timings, then {takeovers} kills and as many ends in order at default ones"
    );
    let short = ElectionRunOptions {
        neap: neap.to_owned(),
        load: env::current_exe()?,
        pace: TimingsPreset::Short,
        stops,
        kills: 0,
        ends: 0,
        seed,
    };
    let default = ElectionRunOptions {
        pace: TimingsPreset::Default,
        stops: 0,
        kills: takeovers,
        ends: takeovers,
        ..short.clone()
    };
    for plan in [short, default] {
        let rounds = plan.stops + plan.kills + plan.ends;
        if rounds == 0 {
            continue;
        }
        let watch = Stopwatch::start();
        let tally = leaders::run(&plan, |tally| progress(tally, rounds, watch)).await?;
        let seconds = watch.elapsed().as_secs();
        println!("✓ {tally}, in {seconds} s");
        if plan.pace == TimingsPreset::Default {
            within(&tally.after_kills, KILL_TAKEOVER_LIMIT, "a kill")?;
            within(&tally.after_ends, TERM_TAKEOVER_LIMIT, "an end in order")?;
        }
    }
    Ok(())
}

fn within(times: &[Duration], limit: Duration, what: &str) -> Result<()> {
    let late = times.iter().filter(|&&time| time > limit).count();
    ensure!(
        late == 0,
        "{late} takeovers after {what} took longer than {limit:?}"
    );
    Ok(())
}

fn progress(tally: &ElectionTally, rounds: usize, watch: Stopwatch) {
    let done = tally.rounds();
    if done.is_multiple_of(10) || done == rounds {
        let seconds = watch.elapsed().as_secs();
        eprintln!("{done}/{rounds} after {seconds} s: {tally}");
    }
}

impl From<PaceArg> for TimingsPreset {
    fn from(timings: PaceArg) -> Self {
        match timings {
            PaceArg::Short => Self::Short,
            PaceArg::Default => Self::Default,
        }
    }
}
