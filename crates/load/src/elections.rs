//! Elections from the command line: the contestants, and who makes their lives hard.

use std::{env, path::Path, time::Duration};

use anyhow::{Result, ensure};
use neap_load::{
    leaders::{self, Pace, Plan, Tally, contestant::Contestant},
    stopwatch::Stopwatch,
};

use crate::Timings;

/// The longest from the last renewal to the next leader.
const AFTER_A_KILL: Duration = Duration::from_secs(16);
/// The longest from the request to end to the next leader.
const AFTER_AN_END: Duration = Duration::from_secs(2);

pub(crate) async fn contestant(kubeconfig: &Path, identity: &str, pace: Timings) -> Result<()> {
    let contestant = Contestant {
        kubeconfig: kubeconfig.to_owned(),
        identity: identity.to_owned(),
        timings: Pace::from(pace).timings(),
    };
    contestant
        .stand(|attempt| println!("{}", attempt.line()))
        .await
}

/// Both parts: many stops at short timings, some real takeovers at default ones.
pub(crate) async fn leaders(neap: &Path, stops: usize, takeovers: usize, seed: u64) -> Result<()> {
    println!(
        "seed {seed}: {stops} stops at short timings, then {takeovers} kills and as many ends in order at default ones"
    );
    let short = Plan {
        neap: neap.to_owned(),
        load: env::current_exe()?,
        pace: Pace::Short,
        stops,
        kills: 0,
        ends: 0,
        seed,
    };
    let default = Plan {
        pace: Pace::Default,
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
        if plan.pace == Pace::Default {
            within(&tally.after_kills, AFTER_A_KILL, "a kill")?;
            within(&tally.after_ends, AFTER_AN_END, "an end in order")?;
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

fn progress(tally: &Tally, rounds: usize, watch: Stopwatch) {
    let done = tally.rounds();
    if done.is_multiple_of(10) || done == rounds {
        let seconds = watch.elapsed().as_secs();
        eprintln!("{done}/{rounds} after {seconds} s: {tally}");
    }
}

impl From<Timings> for Pace {
    fn from(timings: Timings) -> Self {
        match timings {
            Timings::Short => Self::Short,
            Timings::Default => Self::Default,
        }
    }
}
