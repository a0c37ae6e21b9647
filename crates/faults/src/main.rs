//! Every controller of the house under trial.
mod world;
use neap_trial::{Ground, apart, generate, judge::Oracle};
use std::collections::BTreeMap;

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    let ground = runtime.block_on(Ground::prepare())?;
    for workload in world::workloads() {
        let (reference, entries, odd) = apart::calm(&workload, 7, &ground).map_err(anyhow::Error::msg)?;
        println!("{odd:#?} {:?} {} entries", reference.share, entries.len());
        let places = generate::places(&entries);
        let plans: Vec<_> = generate::single(&places).into_iter().map(|rule| generate::plan(workload.name, 7, vec![rule])).collect();
        println!("{} places {} plans", places.len(), plans.len());
        if let Some(file) = std::env::args().nth(1) {
            let plan = &neap_trial::plan::parse(&std::fs::read_to_string(file)?)?[0];
            let record = neap_trial::run::run(&workload, plan, &ground).map_err(anyhow::Error::msg)?;
            for entry in &record.entries { println!("{entry}"); }
            for violation in reference.judge(&record) { println!("{violation}"); }
            println!("idle {:?} took {:?}", record.idle, record.took);
            return Ok(());
        }
        let begun = std::time::Instant::now();
        let outcomes = apart::play(&workload, 7, &plans, &reference, &ground).map_err(anyhow::Error::msg)?;
        let took = begun.elapsed();
        println!("{took:?}, {:?} each", took / plans.len() as u32);
        let mut void = 0; let mut bad = 0;
        let mut by: BTreeMap<Oracle, usize> = BTreeMap::new();
        for (plan, outcome) in plans.iter().zip(&outcomes) {
            if !outcome.idle.is_empty() { void += 1; println!("void {plan}"); continue; }
            if outcome.violations.iter().any(|v| v.kind == "process") { println!("HANG {plan}"); }
            if !outcome.violations.is_empty() {
                bad += 1;
                if bad < 400 { println!("{plan}{:#?}", outcome.violations.iter().take(2).map(ToString::to_string).collect::<Vec<_>>()); }
                for violation in &outcome.violations { *by.entry(violation.oracle).or_default() += 1; }
            }
        }
        let mut costs: Vec<u64> = outcomes.iter().map(|o| o.cost).collect(); costs.sort_unstable();
        println!("cost median {} us, sum {} ms", costs[costs.len()/2], costs.iter().sum::<u64>()/1000);
        println!("void {void} bad {bad} {by:?}");
    }
    Ok(())
}
