//! `neap idle list`.

use std::io::Write;

use jiff::Timestamp;
use neap_idle::account::{Account, span};
use serde_json::json;

use super::{ListOptions, cluster_scope::ClusterScope};
use crate::{
    cli::Output,
    exit::Failure,
    inspect::{print, table::table},
};

pub(super) async fn run(options: &ListOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let scope = ClusterScope::of(&options.scope).await?;
    let accounts = scope.accounts().await?;
    if options.output == Output::Json {
        return print::json(out, "IdleList", &json!({"items": accounts}));
    }
    if accounts.is_empty() {
        let whole = scope.namespace.as_deref();
        let whole = whole.map_or("anywhere".to_owned(), |name| format!("in namespace {name}"));
        return print::text(out, &format!("No service may sleep {whole}."));
    }
    let now = scope.clock.now();
    let heads = [
        "NAMESPACE",
        "NAME",
        "SERVICE",
        "STATE",
        "FOR",
        "LAST WAKE",
        "SAVED",
        "WHY",
    ];
    let rows: Vec<_> = accounts.iter().map(|one| row(one, now)).collect();
    print::text(out, &table(&heads, &rows))
}

fn row(account: &Account, now: Timestamp) -> Vec<String> {
    let none = || "-".to_owned();
    let ago = |moment: Timestamp| span(now.duration_since(moment).as_secs().max(0));
    let wake = account.last_wake.map(|wake| {
        let cause = account.last_cause.as_deref().unwrap_or_default();
        format!("{} ago: {cause}", ago(wake))
    });
    vec![
        account.namespace.clone(),
        account.name.clone(),
        account.service.clone(),
        account.state.word().to_owned(),
        account.asleep_since.map_or_else(none, ago),
        wake.unwrap_or_else(none),
        saved(account.saved_replica_seconds),
        account.why.first().cloned().unwrap_or_default(),
    ]
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
