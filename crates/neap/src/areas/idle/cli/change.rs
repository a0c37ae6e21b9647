//! `neap idle wake`, `sleep` and `keep-awake`: requests by annotations on the object, which the leading operator
//! carries out, and which outlive it.

use std::{io::Write, time::Duration};

use jiff::{Timestamp, Unit};
use neap_idle::{
    account::{State, account},
    api::{
        ElastiService,
        annotations::{KEEP_AWAKE_UNTIL, SLEEP, WAKE},
    },
};
use neap_kit::{
    apply::{self, ResourceKind, Writer},
    key::Key,
    lease::Leadership,
    why::chain,
};
use serde_json::{Value, json};

use super::{KeepOptions, SleepOptions, WakeOptions, Which, cluster_scope::ClusterScope};
use crate::{
    exit::{Exit, Failure},
    inspect::print,
    symbols::Symbols,
};

/// The time between two reads while a command waits.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The result of a command.
struct CommandResult {
    /// The word in JSON.
    done: &'static str,
    /// The text after the name of a service.
    text: String,
}

pub(super) async fn wake(
    options: &WakeOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let scope = ClusterScope::of(&options.which.scope).await?;
    let services = selected(&scope, &options.which).await?;
    annotate(&scope, &services, WAKE, &json!(scope.clock.now())).await?;
    let mut text = "was requested to wake";
    if let Some(limit) = options.wait {
        let awake = |state| matches!(state, State::Awake);
        wait_until(&scope, &services, limit, awake, "awake").await?;
        text = "is awake";
    }
    let result = CommandResult {
        done: "wake",
        text: text.to_owned(),
    };
    print_result(&options.which, &services, &result, symbols, out)
}

pub(super) async fn sleep(
    options: &SleepOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let scope = ClusterScope::of(&options.which.scope).await?;
    let services = selected(&scope, &options.which).await?;
    annotate(&scope, &services, SLEEP, &json!(scope.clock.now())).await?;
    let mut text = "was requested to sleep";
    if let Some(limit) = options.wait {
        let asleep = |state| state == State::Asleep;
        wait_until(&scope, &services, limit, asleep, "asleep").await?;
        text = "is asleep";
    }
    let result = CommandResult {
        done: "sleep",
        text: text.to_owned(),
    };
    print_result(&options.which, &services, &result, symbols, out)?;
    if options.which.output.data().is_some() {
        return Ok(());
    }
    let now = scope.clock.now();
    for kept in services.iter().map(|service| account(service, now)) {
        if let Some(until) = kept.kept_awake_until {
            let name = &kept.name;
            let line = format!(
                "  {name} is kept awake until {until} and sleeps after that; sooner with: \
                 neap idle keep-awake {name} --off"
            );
            print::text(out, &line)?;
        }
    }
    Ok(())
}

pub(super) async fn keep_awake(
    options: &KeepOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let scope = ClusterScope::of(&options.which.scope).await?;
    let services = selected(&scope, &options.which).await?;
    let until = keep_until(options, scope.clock.now())?;
    annotate(&scope, &services, KEEP_AWAKE_UNTIL, &json!(until)).await?;
    let text = match until {
        Some(until) => format!("is kept awake until {until}"),
        None => "may sleep again".to_owned(),
    };
    let done = "keep-awake";
    print_result(
        &options.which,
        &services,
        &CommandResult { done, text },
        symbols,
        out,
    )
}

/// The time until which services are kept awake; none with `--off`.
fn keep_until(options: &KeepOptions, now: Timestamp) -> Result<Option<Timestamp>, Failure> {
    let Some(lasting) = options.lasting.filter(|lasting| !lasting.is_zero()) else {
        let past = options.until.is_some_and(|until| until <= now) || options.lasting.is_some();
        return if past {
            Err(in_the_past(now))
        } else {
            Ok(options.until)
        };
    };
    let until = now.checked_add(lasting).map_err(|_| {
        let why = format!("{lasting:?} from now is after the latest time that can be stored");
        Failure::new("NT-IDLE-0012", Exit::Usage, "invalid time", &why).remedy(
            "use a shorter time; to keep a service awake for good, delete its ElastiService",
        )
    })?;
    // A person reads it.
    Ok(Some(until.round(Unit::Second).unwrap_or(until)))
}

fn in_the_past(now: Timestamp) -> Failure {
    let now = now.round(Unit::Second).unwrap_or(now);
    let why = format!("that time is in the past: it is {now}");
    Failure::new("NT-IDLE-0012", Exit::Usage, "invalid time", &why)
        .remedy("use a time in the future; --off lets it sleep again")
}

/// The services of the given names, or all.
async fn selected(scope: &ClusterScope, which: &Which) -> Result<Vec<ElastiService>, Failure> {
    if which.all {
        return scope.services().await;
    }
    if scope.namespace.is_none() {
        let why = "a name refers to one namespace, and -A selects all of them";
        return Err(Failure::new(
            "NT-IDLE-0010",
            Exit::Usage,
            "a name cannot be combined with -A",
            why,
        )
        .remedy("set the namespace with -n, or use --all"));
    }
    let mut services = Vec::new();
    for name in &which.names {
        services.push(scope.service(name).await?);
    }
    Ok(services)
}

/// Sets an annotation on each service; null removes it.
async fn annotate(
    scope: &ClusterScope,
    services: &[ElastiService],
    name: &str,
    value: &Value,
) -> Result<(), Failure> {
    let writer = writer(scope);
    let kind = ResourceKind::of::<ElastiService>();
    for service in services {
        let mut metadata = service.metadata.clone();
        // Other changes since it was read do not matter.
        metadata.resource_version = None;
        let change = json!({"metadata": {"annotations": {name: value}}});
        let written = writer.merge(&kind, &metadata, None, change).await;
        written.map_err(|error| write_failed(&Key::of(service), &error))?;
    }
    Ok(())
}

/// A writer without leader election.
pub(super) fn writer(scope: &ClusterScope) -> Writer {
    let leadership = Leadership::without_election(scope.clock);
    Writer::new(
        scope.cluster.client.clone(),
        "neap-cli",
        leadership,
        scope.clock,
    )
}

pub(super) fn write_failed(key: &Key, error: &apply::Error) -> Failure {
    let what = format!("ElastiService {key} cannot be changed");
    Failure::new("NT-IDLE-0008", Exit::Failed, &what, &chain(error))
        .remedy("check your rights: kubectl auth can-i patch elastiservices.elasti.truefoundry.com")
}

async fn wait_until(
    scope: &ClusterScope,
    services: &[ElastiService],
    limit: Duration,
    is: impl Fn(State) -> bool,
    word: &str,
) -> Result<(), Failure> {
    let deadline = scope.clock.uptime() + limit;
    for service in services {
        let namespace = service.metadata.namespace.clone();
        let name = service.metadata.name.clone().unwrap_or_default();
        let scope = ClusterScope {
            cluster: scope.cluster.clone(),
            namespace,
            clock: scope.clock,
        };
        loop {
            let account = account(&scope.service(&name).await?, scope.clock.now());
            if is(account.state) {
                break;
            }
            // Waiting longer does not help a service whose pods cannot start.
            let failed = account.state == State::Failed && word == "awake";
            if failed || scope.clock.uptime() >= deadline {
                let what = if failed {
                    format!("{name} does not become {word}")
                } else {
                    format!("{name} is not {word} after {limit:?}")
                };
                let why = format!("it is {}: {}", account.state.word(), account.why.join("; "));
                return Err(
                    Failure::new("NT-IDLE-0009", Exit::TimedOut, &what, &why).remedy(format!(
                        "neap explain elastiservice/{name} shows more; the operator continues meanwhile"
                    )),
                );
            }
            scope.clock.sleep(POLL_INTERVAL).await;
        }
    }
    Ok(())
}

fn print_result(
    which: &Which,
    services: &[ElastiService],
    result: &CommandResult,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let keys: Vec<_> = services.iter().map(Key::of).collect();
    if let Some(format) = which.output.data() {
        let name = |key: &Key| json!({"namespace": key.namespace(), "name": key.name()});
        let items: Vec<_> = keys.iter().map(name).collect();
        return print::data(
            out,
            format,
            "IdleDone",
            &json!({"done": result.done, "items": items}),
        );
    }
    if keys.is_empty() {
        return print::text(out, "There is no such service.");
    }
    let line = |key: &Key| format!("{} {key} {}", symbols.done, result.text);
    let lines: Vec<_> = keys.iter().map(line).collect();
    print::text(out, &lines.join("\n"))
}
