//! Prints how many objects are written in ten quiet minutes beside seven releases, Leases aside.

#![expect(clippy::print_stdout, reason = "a program of a bench speaks")]

use neap_release_trial::nightly;
use neap_trial::{ClusterTemplate, plan::Plan, run::run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let template = ClusterTemplate::prepare_blocking()?;
    let calm = Plan::without_faults("release-nightly", 7);
    let record = run(&nightly::workload(), &calm, &template)?;
    if !record.violations.is_empty() {
        return Err(format!("{:#?}", record.violations).into());
    }
    // A run ends with ten minutes in which nothing is asked for.
    let last = record.ends.last().copied().unwrap_or_default();
    let after = record.history.iter().filter(|it| it.revision() > last);
    let writes = after.filter(|it| &*it.resource != "coordination.k8s.io/leases");
    println!("{}", serde_json::json!({"writes": writes.count()}));
    Ok(())
}
