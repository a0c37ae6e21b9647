//! `neap idle show`.

use std::{fmt::Write as _, io::Write};

use jiff::Timestamp;
use neap_idle::{
    account::{Account, State, account},
    api::Breakdown,
};
use neap_kit::clock::short_duration;

use super::{ShowOptions, cluster_scope::ClusterScope, list::saved};
use crate::{exit::Failure, inspect::print, printable::printable_line, symbols::Symbols};

pub(super) async fn run(
    options: &ShowOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let scope = ClusterScope::named(&options.cluster, options.namespace.as_deref()).await?;
    let service = scope.service(&options.name).await?;
    let now = scope.clock.now();
    let account = account(&service, now);
    match options.output.data() {
        None => print::text(out, &text(&account, now, symbols)),
        Some(format) => print::data(out, format, "IdleService", &account),
    }
}

fn text(account: &Account, now: Timestamp, symbols: Symbols) -> String {
    let mark = match account.state {
        State::Stalled | State::Failed | State::Unseen => symbols.failed,
        State::Asleep if account.not_ready.is_some() => symbols.failed,
        State::Leaving | State::FallingAsleep | State::Waking => symbols.note,
        State::Asleep | State::Awake => symbols.done,
    };
    let mut text = format!(
        "{mark} {}/{} is {}\n",
        account.namespace,
        account.name,
        account.state.word()
    );
    let mut line = |title: &str, value: &str| {
        let _ = writeln!(text, "{title:<10} {}", printable_line(value));
    };
    line("Service", &account.service);
    line("Target", &account.target);
    let path = if account.proxied {
        "through resolvers"
    } else {
        "directly to its pods"
    };
    line("Path", path);
    for port in &account.ports {
        let value = format!("{} at resolver port {}", port.port, port.resolver_port);
        line("Port", &value);
    }
    if let Some(until) = account.kept_awake_until {
        line("Kept", &format!("awake until {until}"));
    }
    if let Some(wake) = account.last_wake {
        let ago = short_duration(now.duration_since(wake).as_secs());
        let cause = account.last_cause.as_deref().unwrap_or_default();
        line("Last wake", &format!("{ago} ago: {cause}"));
    }
    // The parts of a wake that has not succeeded are not known yet.
    let woke = !matches!(account.state, State::Failed | State::Waking);
    if let Some(breakdown) = account.breakdown.as_ref().filter(|_| woke) {
        line("Took", &took(breakdown));
    }
    if account.saved_replica_seconds > 0 {
        let saved = saved(account.saved_replica_seconds);
        line("Saved", &format!("{saved} of replica time"));
    }
    if let Some(would) = account.would_save_replica_seconds {
        line(
            "Would save",
            &format!("{} of replica time; it is only observed", saved(would)),
        );
    }
    for (at, why) in account.why.iter().enumerate() {
        line(if at == 0 { "Why" } else { "" }, why);
    }
    for (at, advice) in account.advice.iter().enumerate() {
        line(if at == 0 { "Do" } else { "" }, advice);
    }
    text
}

fn took(breakdown: &Breakdown) -> String {
    let parts = [
        ("queue", breakdown.queue),
        ("scale", breakdown.scale),
        ("schedule", breakdown.schedule),
        ("ready", breakdown.ready),
        ("connect", breakdown.connect),
        ("first byte", breakdown.first_byte),
    ];
    let parts: Vec<_> = parts
        .iter()
        .map(|(part, time)| format!("{part} {time} ms"))
        .collect();
    parts.join(", ")
}
