//! `neap idle list`.

use std::io::Write;

use jiff::Timestamp;
use neap_idle::account::Account;
use neap_kit::clock::short_duration;

use super::{ListOptions, cluster_scope::ClusterScope};
use crate::{
    exit::Failure,
    inspect::listing::{self, Column, Listed, Listing},
};

const COLUMNS: &[Column] = &[
    Column::new("NAMESPACE"),
    Column::new("NAME"),
    Column::new("SERVICE"),
    Column::new("STATE"),
    Column::age("FOR"),
    Column::age("LAST WAKE"),
    Column::age("SAVED"),
    Column::new("TARGET").wide(),
    Column::new("PATH").wide(),
    Column::age("WHY"),
];

pub(super) async fn run(options: &ListOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let scope = ClusterScope::of(&options.scope).await?;
    let read = async || {
        let accounts = scope.accounts().await?;
        let now = scope.clock.now();
        let whole = scope.namespace.as_deref();
        let whole = whole.map_or("anywhere".to_owned(), |name| format!("in namespace {name}"));
        Ok(Listing {
            kind: "IdleList",
            resource: "elastiservice.elasti.truefoundry.com",
            columns: COLUMNS,
            items: accounts.iter().map(|one| listed(one, now)).collect(),
            empty: format!("No service may sleep {whole}."),
        })
    };
    listing::show(options.listing, scope.clock, out, read).await
}

fn listed(account: &Account, now: Timestamp) -> Listed {
    let none = || "-".to_owned();
    let ago = |moment: Timestamp| short_duration(now.duration_since(moment).as_secs());
    let wake = account.last_wake.map(|wake| {
        let cause = account.last_cause.as_deref().unwrap_or_default();
        format!("{} ago: {cause}", ago(wake))
    });
    let cells = vec![
        account.namespace.clone(),
        account.name.clone(),
        account.service.clone(),
        account.state.word().to_owned(),
        account.asleep_since.map_or_else(none, ago),
        wake.unwrap_or_else(none),
        saved(account.saved_replica_seconds),
        account.target.clone(),
        if account.proxied { "resolver" } else { "pods" }.to_owned(),
        account.why.first().cloned().unwrap_or_default(),
    ];
    Listed {
        name: account.name.clone(),
        cells,
        data: serde_json::to_value(account).unwrap_or_default(),
    }
}

/// Replica-time that did not run, for people.
pub(super) fn saved(seconds: i64) -> String {
    match seconds {
        0 => "-".to_owned(),
        1..120 => format!("{seconds} s"),
        120..3_600 => format!("{:.1} min", seconds as f64 / 60.0),
        _ => format!("{:.1} h", seconds as f64 / 3_600.0),
    }
}
