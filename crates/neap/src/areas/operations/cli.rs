//! `neap operations`: what runs, where it is, and how to end or repeat it.

mod lines;
mod sources;

use std::{io::Write, time::Duration};

use clap::{Args, Subcommand};
use serde_json::Value;

use self::{
    lines::{has_ended, is_done, line, numbered, seconds_only, shown_steps, steps, usual_times},
    sources::Sources,
};
use crate::{
    areas::{AreaCommand, fleet::ProviderArgs},
    cli::{ListingOptions, duration},
    exit::{Exit, Failure},
    inspect::{
        block_on,
        listing::{self, Column, Listed, Listing},
        print,
    },
    printable::printable_line,
    symbols::Symbols,
};

/// How often a watched operation is read.
const POLL: Duration = Duration::from_secs(1);

/// List, follow, cancel and retry long-running work: on clusters, and of Operation objects
#[derive(Debug, Args)]
pub(crate) struct Command {
    #[command(subcommand)]
    command: OperationsCommand,
}

#[derive(Debug, Subcommand)]
enum OperationsCommand {
    /// List operations, newest first
    List(ListOptions),

    /// Show the steps of an operation, and how long each usually takes
    Show(OperationOptions),

    /// Print each step when it waits and when it ends, until the operation ends
    Watch(WatchOptions),

    /// Cancel an operation: the running step is interrupted
    Cancel(CancelOptions),

    /// Run a failed operation again. On a cluster, steps that are done are not repeated; an Operation object gets a
    /// successor that begins with the first step
    Retry(OperationOptions),
}

#[derive(Debug, Args)]
struct ListOptions {
    #[command(flatten)]
    listing: ListingOptions,

    #[command(flatten)]
    provider: ProviderArgs,
}

#[derive(Debug, Args)]
struct OperationOptions {
    /// Id of the operation, or its beginning; NAMESPACE/NAME of an Operation object; by default the newest
    id: Option<String>,

    #[command(flatten)]
    provider: ProviderArgs,
}

#[derive(Debug, Args)]
struct WatchOptions {
    #[command(flatten)]
    operation: OperationOptions,

    /// How long to wait
    #[arg(long, value_name = "TIME", default_value = "2h", value_parser = duration)]
    timeout: Duration,
}

#[derive(Debug, Args)]
struct CancelOptions {
    /// Id of the operation, or its beginning; NAMESPACE/NAME of an Operation object
    id: String,

    #[command(flatten)]
    provider: ProviderArgs,

    /// Why it is cancelled
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "cancelled with neap operations cancel"
    )]
    reason: String,
}

impl AreaCommand for Command {
    fn run(self, symbols: Symbols, out: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            OperationsCommand::List(options) => block_on(list(&options, out)),
            OperationsCommand::Show(options) => block_on(show(&options, symbols, out)),
            OperationsCommand::Watch(options) => block_on(watch(&options, symbols, out)),
            OperationsCommand::Cancel(options) => block_on(cancel(&options, symbols, out)),
            OperationsCommand::Retry(options) => block_on(retry(&options, symbols, out)),
        }
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn none_of(id: Option<&str>) -> Failure {
    let (what, why, remedy) = match id {
        Some(id) => (
            format!("there is no operation {id}"),
            "no operation has this id",
            "list them: neap operations list",
        ),
        None => (
            "there is no operation".to_owned(),
            "no operation has begun",
            "begin one, for example with neap fleet create NAME",
        ),
    };
    Failure::new("NT-FLEET-0010", Exit::NotFound, &what, why).remedy(remedy)
}

/// The operation that an id or its beginning names, or the newest.
fn find<'a>(operations: &'a [Value], id: Option<&str>) -> Result<&'a Value, Failure> {
    let wanted = id.unwrap_or_default();
    // A whole id is also the beginning of that of its successor.
    if let Some(exact) = operations.iter().find(|it| text(it, "/id") == wanted) {
        return Ok(exact);
    }
    let mut found = operations
        .iter()
        .filter(|it| text(it, "/id").starts_with(wanted));
    let first = found.next().ok_or_else(|| none_of(id))?;
    if id.is_some() && found.next().is_some() {
        let what = format!("several operations begin with {wanted}");
        let why = "the beginning of an id must name one operation";
        return Err(Failure::new("NT-FLEET-0010", Exit::Usage, &what, why)
            .remedy("write more of the id; neap operations list shows all"));
    }
    Ok(first)
}

/// The last part of the path of a cluster; the target of an Operation object as it is.
fn target(operation: &Value) -> &str {
    let target = text(operation, "/cluster");
    match target.strip_prefix('/') {
        Some(path) => path.rsplit('/').next().unwrap_or_default(),
        None => target,
    }
}

const COLUMNS: &[Column] = &[
    Column::new("ID"),
    Column::new("WORK"),
    Column::new("TARGET"),
    Column::new("STATUS"),
    Column::new("STEPS"),
    Column::new("STEP"),
    Column::new("STARTED"),
    Column::new("RESOURCE").wide(),
];

async fn list(options: &ListOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let sources = Sources::connect(&options.provider).await?;
    let read = async || {
        let operations = sources.all().await?;
        Ok(Listing {
            kind: "OperationList",
            resource: "operation",
            columns: COLUMNS,
            items: operations.into_iter().map(listed).collect(),
            empty: "There is no operation.".to_owned(),
        })
    };
    listing::show(options.listing, sources.clock, out, read).await
}

fn listed(operation: Value) -> Listed {
    let steps = steps(&operation);
    let done = steps.iter().filter(|step| is_done(step)).count();
    let total = operation["stepsTotal"].as_u64().unwrap_or_default();
    let current = steps.iter().rev().find(|step| !is_done(step));
    let cells = vec![
        text(&operation, "/id").to_owned(),
        text(&operation, "/work").to_owned(),
        target(&operation).to_owned(),
        text(&operation, "/status").to_owned(),
        format!("{done}/{total}"),
        current.map_or("-".to_owned(), |it| text(it, "/name").to_owned()),
        seconds_only(text(&operation, "/startTime")),
        text(&operation, "/cluster").to_owned(),
    ];
    Listed {
        name: text(&operation, "/id").to_owned(),
        cells,
        data: operation,
    }
}

async fn show(
    options: &OperationOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let sources = Sources::connect(&options.provider).await?;
    let operations = sources.all().await?;
    let operation = find(&operations, options.id.as_deref())?;
    let usual = usual_times(&operations);
    let now = sources.clock.now().to_string();
    let head = format!(
        "{} {}  {}\n  {}",
        printable_line(text(operation, "/work")),
        text(operation, "/status"),
        printable_line(text(operation, "/id")),
        printable_line(text(operation, "/cluster")),
    );
    print::text(out, &head)?;
    for step in numbered(&shown_steps(operation)) {
        print::line(out, &line(step, &usual, symbols, &now))?;
    }
    let error = &operation["error"];
    if error.is_object() {
        let text = format!(
            "{} {}: {}",
            symbols.failed,
            text(error, "/code"),
            text(error, "/message")
        );
        print::line(out, &text)?;
    }
    // What was found when it failed.
    for found in text(operation, "/timeline/message").lines() {
        print::line(out, &format!("  {}", printable_line(found)))?;
    }
    Ok(())
}

async fn watch(
    options: &WatchOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let sources = Sources::connect(&options.operation.provider).await?;
    let operations = sources.all().await?;
    let watched = find(&operations, options.operation.id.as_deref())?;
    let usual = usual_times(&operations);
    let started = sources.clock.uptime();
    let mut shown = 0;
    // What was printed about the step that waits.
    let mut waits_for = String::new();
    loop {
        let operation = sources.read(watched).await?;
        let now = sources.clock.now().to_string();
        let steps: Vec<_> = numbered(steps(&operation)).collect();
        let ended = steps.iter().take_while(|(step, _)| has_ended(step)).count();
        for step in &steps[shown.min(ended)..ended] {
            print::line(out, &line(*step, &usual, symbols, &now))?;
        }
        shown = ended;
        if let Some((step, occurrence)) = steps.get(ended) {
            let said = format!("{}{}", text(step, "/name"), text(step, "/cause/message"));
            if text(step, "/state") == "Waiting" && said != waits_for {
                print::line(out, &line((step, *occurrence), &usual, symbols, &now))?;
                waits_for = said;
            }
        }
        if !operation["endTime"].is_null() {
            return ended_line(&operation, symbols, out);
        }
        if sources.clock.uptime().saturating_sub(started) > options.timeout {
            let what = "the operation did not end in time";
            return Err(
                Failure::new("NT-FLEET-0010", Exit::TimedOut, what, "it continues")
                    .remedy("follow it: neap operations watch; or wait longer with --timeout"),
            );
        }
        sources.clock.sleep(POLL).await;
    }
}

/// How the operation ended: a line, or a failure with the way to run it again.
fn ended_line(operation: &Value, symbols: Symbols, out: &mut dyn Write) -> Result<(), Failure> {
    let error = &operation["error"];
    let status = text(operation, "/status");
    if error.is_object() {
        let what = format!("the operation ended {status}");
        let why = format!("{}: {}", text(error, "/code"), text(error, "/message"));
        return Err(Failure::new("NT-FLEET-0010", Exit::Failed, &what, &why)
            .remedy(format!("neap operations retry {}", text(operation, "/id"))));
    }
    print::text(out, &format!("{} {status}", symbols.done))
}

/// What has ended cannot be cancelled.
fn has_not_ended(operation: &Value) -> Result<(), Failure> {
    if operation["endTime"].is_null() {
        return Ok(());
    }
    let id = text(operation, "/id");
    let what = format!("the operation {id} has ended");
    let why = format!("its state is {}", text(operation, "/status"));
    Err(
        Failure::new("NT-CLI-0006", Exit::Refused, &what, &why).remedy(format!(
            "nothing is left to cancel; see its steps: neap operations show {id}"
        )),
    )
}

async fn cancel(
    options: &CancelOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let sources = Sources::connect(&options.provider).await?;
    let operations = sources.all().await?;
    let operation = find(&operations, Some(&options.id))?;
    has_not_ended(operation)?;
    sources.cancel(operation, &options.reason).await?;
    let text = format!(
        "{} the operation {} on {} is being cancelled",
        symbols.done,
        text(operation, "/id"),
        target(operation)
    );
    print::text(out, &text)
}

/// What succeeded is not run again.
fn has_failed(operation: &Value) -> Result<(), Failure> {
    let status = text(operation, "/status");
    if status != "Succeeded" {
        return Ok(());
    }
    let id = text(operation, "/id");
    let what = format!("the operation {id} did not fail");
    let why = "it has ended, and every step is done";
    Err(
        Failure::new("NT-CLI-0006", Exit::Refused, &what, why).remedy(format!(
            "nothing is left to run again; see its steps: neap operations show {id}"
        )),
    )
}

async fn retry(
    options: &OperationOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let sources = Sources::connect(&options.provider).await?;
    let operations = sources.all().await?;
    let operation = find(&operations, options.id.as_deref())?;
    has_failed(operation)?;
    let (id, keeps) = sources.retry(operation).await?;
    let from = if keeps {
        "from the step that failed"
    } else {
        "from its first step"
    };
    print::text(
        out,
        &format!(
            "{} the operation on {} runs again {from}, as {id}",
            symbols.done,
            target(operation)
        ),
    )
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        command: Command,
    }

    #[test]
    fn only_what_a_user_names_is_cancelled() {
        assert!(Line::try_parse_from(["operations", "cancel"]).is_err());
        assert!(Line::try_parse_from(["operations", "cancel", "3f2a"]).is_ok());
        assert!(Line::try_parse_from(["operations", "show"]).is_ok());
    }

    #[test]
    fn what_is_not_there_is_named_as_it_was_asked_for() {
        let unnamed = find(&[], None).unwrap_err().to_string();
        assert!(!unnamed.contains("this id"), "{unnamed}");
        let named = find(&[], Some("3f")).unwrap_err().to_string();
        assert!(named.contains("there is no operation 3f"), "{named}");
    }

    #[test]
    fn what_has_ended_is_neither_cancelled_nor_run_again() {
        let operation =
            json!({"id": "3f", "status": "Succeeded", "endTime": "2026-01-01T00:00:00Z"});
        for refused in [has_not_ended(&operation), has_failed(&operation)] {
            let failure = refused.unwrap_err();
            assert_eq!(failure.exit(), Exit::Refused);
            assert!(failure.advice().contains("nothing is left"), "{failure}");
        }
        let running = json!({"id": "3f", "status": "Running", "endTime": null});
        assert!(has_not_ended(&running).is_ok() && has_failed(&running).is_ok());
    }
}
