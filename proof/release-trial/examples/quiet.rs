//! Prints how many objects are written in ten quiet minutes beside seven releases, Leases aside.

#![expect(clippy::print_stdout, reason = "a program of a bench speaks")]

use neap_release_trial::nightly;
use neap_trial::{ClusterTemplate, plan::Plan, run::run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let template = ClusterTemplate::prepare_blocking()?;
    let calm = Plan::without_faults("release-nightly-at-rest", 7);
    let record = run(&nightly::at_rest(), &calm, &template)?;
    if !record.violations.is_empty() {
        return Err(format!("{:#?}", record.violations).into());
    }
    let writes = nightly::writes_at_rest(&record);
    println!("{}", serde_json::json!({"writes": writes}));
    Ok(())
}
