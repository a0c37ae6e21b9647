//! `neap idle report`: the replica-time that sleep has saved.

use std::{fmt::Write as _, io::Write};

use neap_idle::account::{Account, State};
use serde_json::json;

use super::{ReportOptions, cluster_scope::ClusterScope, list::saved};
use crate::{
    exit::Failure,
    inspect::{print, table::table},
};

pub(super) async fn run(options: &ReportOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let scope = ClusterScope::of(&options.scope).await?;
    let accounts = scope.accounts().await?;
    let asleep = accounts
        .iter()
        .filter(|one| one.state == State::Asleep)
        .count();
    let all: i64 = accounts.iter().map(|one| one.saved_replica_seconds).sum();
    let would = accounts
        .iter()
        .filter_map(|one| one.would_save_replica_seconds);
    let would: i64 = would.sum();
    if let Some(format) = options.output.data() {
        let items: Vec<_> = accounts.iter().map(item).collect();
        let report = json!({
            "items": items,
            "services": accounts.len(),
            "asleep": asleep,
            "savedReplicaSeconds": all,
            "wouldSaveReplicaSeconds": would,
        });
        return print::data(out, format, "IdleReport", &report);
    }
    let heads = ["NAMESPACE", "NAME", "STATE", "SAVED", "WOULD SAVE"];
    let rows: Vec<_> = accounts.iter().map(row).collect();
    let count = accounts.len();
    let mut text = table(&heads, &rows);
    let all = match all {
        ..=0 => "nothing saved so far".to_owned(),
        _ => format!("saved {} of replica time so far", saved(all)),
    };
    let _ = write!(text, "\n{asleep} of {count} asleep; {all}");
    if would > 0 {
        let would = saved(would);
        let _ = write!(text, "; the observed ones would have saved {would}");
    }
    print::text(out, &text)
}

fn item(account: &Account) -> serde_json::Value {
    json!({
        "namespace": account.namespace,
        "name": account.name,
        "state": account.state,
        "savedReplicaSeconds": account.saved_replica_seconds,
        "wouldSaveReplicaSeconds": account.would_save_replica_seconds,
    })
}

fn row(account: &Account) -> Vec<String> {
    let would = account.would_save_replica_seconds;
    vec![
        account.namespace.clone(),
        account.name.clone(),
        account.state.word().to_owned(),
        saved(account.saved_replica_seconds),
        would.map_or("-".to_owned(), saved),
    ]
}
