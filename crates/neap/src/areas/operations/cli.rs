//! `neap operations`: what runs, where it is, and how to end or repeat it.

use std::{collections::BTreeMap, io::Write, time::Duration};

use clap::{Args, Subcommand};
use http::Method;
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    areas::{
        AreaCommand,
        fleet::{Provider, ProviderArgs},
    },
    cli::{ListingOptions, duration},
    exit::{Exit, Failure},
    inspect::{
        block_on,
        listing::{self, Column, Listed, Listing},
        print,
    },
    symbols::Symbols,
};

/// How often a watched operation is read.
const POLL: Duration = Duration::from_secs(1);

/// List, follow, cancel and retry long-running work on clusters
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

    /// Print each step when it ends, until the operation ends
    Watch(WatchOptions),

    /// Cancel an operation: the running step is interrupted
    Cancel(CancelOptions),

    /// Run a failed operation again; steps that are done are not repeated
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
    /// Id of the operation, or its beginning; by default the newest
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
    #[command(flatten)]
    operation: OperationOptions,

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

async fn all(provider: &Provider) -> Result<Vec<Value>, Failure> {
    let answer = provider
        .call(Method::GET, "/admin/operations", None)
        .await?;
    Ok(answer.body["value"].as_array().cloned().unwrap_or_default())
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The operation that an id or its beginning names, or the newest.
fn find<'a>(operations: &'a [Value], id: Option<&str>) -> Result<&'a Value, Failure> {
    let wanted = id.unwrap_or_default();
    let mut found = operations
        .iter()
        .filter(|it| text(it, "/id").starts_with(wanted));
    let first = found.next().ok_or_else(|| {
        let what = format!("there is no operation {wanted}");
        Failure::new(
            "NT-FLEET-0010",
            Exit::NotFound,
            what.trim(),
            "none has this id",
        )
        .remedy("list them: neap operations list")
    })?;
    if id.is_some() && found.next().is_some() {
        let what = format!("several operations begin with {wanted}");
        return Err(Failure::new(
            "NT-FLEET-0010",
            Exit::Usage,
            &what,
            "write more of the id",
        ));
    }
    Ok(first)
}

fn steps(operation: &Value) -> &[Value] {
    let steps = operation
        .pointer("/timeline/steps")
        .and_then(Value::as_array);
    steps.map_or(&[], Vec::as_slice)
}

fn is_done(step: &Value) -> bool {
    matches!(text(step, "/state"), "Succeeded" | "Skipped" | "TimedOut")
}

fn seconds(from: &str, to: &str) -> Option<i64> {
    let (from, to): (Timestamp, Timestamp) = (from.parse().ok()?, to.parse().ok()?);
    Some(to.duration_since(from).as_secs())
}

/// The median time of each step in operations that ended, in seconds.
fn usual(operations: &[Value]) -> BTreeMap<String, i64> {
    let mut times: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for step in operations.iter().flat_map(steps) {
        let took = seconds(text(step, "/began"), text(step, "/ended"));
        if let Some(took) = took.filter(|_| text(step, "/state") == "Succeeded") {
            times
                .entry(text(step, "/name").to_owned())
                .or_default()
                .push(took);
        }
    }
    let medians = times.into_iter().map(|(name, mut times)| {
        times.sort_unstable();
        (name, times[times.len() / 2])
    });
    medians.collect()
}

const COLUMNS: &[Column] = &[
    Column::new("ID"),
    Column::new("WORK"),
    Column::new("CLUSTER"),
    Column::new("STATUS"),
    Column::new("STEPS"),
    Column::new("STEP"),
    Column::new("STARTED"),
    Column::new("RESOURCE").wide(),
];

async fn list(options: &ListOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let provider = Provider::connect(&options.provider).await?;
    let read = async || {
        let operations = all(&provider).await?;
        Ok(Listing {
            kind: "OperationList",
            resource: "operation",
            columns: COLUMNS,
            items: operations.into_iter().map(listed).collect(),
            empty: "There is no operation.".to_owned(),
        })
    };
    listing::show(options.listing, provider.clock, out, read).await
}

fn listed(operation: Value) -> Listed {
    let steps = steps(&operation);
    let done = steps.iter().filter(|step| is_done(step)).count();
    let total = operation["stepsTotal"].as_u64().unwrap_or_default();
    let current = steps.iter().rev().find(|step| !is_done(step));
    let cluster = text(&operation, "/cluster").rsplit('/').next();
    let cells = vec![
        text(&operation, "/id").to_owned(),
        text(&operation, "/work").to_owned(),
        cluster.unwrap_or_default().to_owned(),
        text(&operation, "/status").to_owned(),
        format!("{done}/{total}"),
        current.map_or("-".to_owned(), |it| text(it, "/name").to_owned()),
        text(&operation, "/startTime").to_owned(),
        text(&operation, "/cluster").to_owned(),
    ];
    Listed {
        name: text(&operation, "/id").to_owned(),
        cells,
        data: operation,
    }
}

fn mark(step: &Value, symbols: Symbols) -> &'static str {
    match text(step, "/state") {
        "Succeeded" => symbols.done,
        "Failed" => symbols.failed,
        "TimedOut" => symbols.note,
        _ => symbols.dot,
    }
}

/// A line about a step.
fn line(step: &Value, usual: &BTreeMap<String, i64>, symbols: Symbols) -> String {
    let name = text(step, "/name");
    let took = seconds(text(step, "/began"), text(step, "/ended"));
    let took = took.map_or(String::new(), |took| format!("{took} s"));
    let usual = usual
        .get(name)
        .map_or(String::new(), |it| format!("usually {it} s"));
    let attempts = step["attempts"].as_u64().unwrap_or_default();
    let attempts = if attempts > 1 {
        format!("{attempts} attempts")
    } else {
        String::new()
    };
    let cause = text(step, "/cause/message");
    let notes = [took.as_str(), usual.as_str(), attempts.as_str(), cause];
    let notes: Vec<_> = notes.into_iter().filter(|it| !it.is_empty()).collect();
    let skipped = text(step, "/state") == "Skipped";
    let notes = if skipped {
        format!("skipped: {cause}")
    } else {
        notes.join(", ")
    };
    format!("  {} {name:<34} {notes}", mark(step, symbols))
        .trim_end()
        .to_owned()
}

async fn show(
    options: &OperationOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let provider = Provider::connect(&options.provider).await?;
    let operations = all(&provider).await?;
    let operation = find(&operations, options.id.as_deref())?;
    let usual = usual(&operations);
    let head = format!(
        "{} {}  {}\n  {}",
        text(operation, "/work"),
        text(operation, "/status"),
        text(operation, "/id"),
        text(operation, "/cluster"),
    );
    print::text(out, &head)?;
    for step in steps(operation) {
        print::text(out, &line(step, &usual, symbols))?;
    }
    let error = &operation["error"];
    if error.is_object() {
        let text = format!(
            "{} {}: {}",
            symbols.failed,
            text(error, "/code"),
            text(error, "/message")
        );
        print::text(out, &text)?;
    }
    Ok(())
}

fn path(operation: &Value, action: &str) -> String {
    let subscription = text(operation, "/cluster")
        .split('/')
        .nth(2)
        .unwrap_or_default();
    format!(
        "/admin/operations/{subscription}/{}{action}",
        text(operation, "/id")
    )
}

async fn watch(
    options: &WatchOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let provider = Provider::connect(&options.operation.provider).await?;
    let operations = all(&provider).await?;
    let path = path(find(&operations, options.operation.id.as_deref())?, "");
    let usual = usual(&operations);
    let started = provider.clock.uptime();
    let mut shown = 0;
    loop {
        let operation = provider.call(Method::GET, &path, None).await?.body;
        let ended = steps(&operation)
            .iter()
            .take_while(|step| is_done(step) || text(step, "/state") == "Failed");
        let ended: Vec<_> = ended.collect();
        for step in &ended[shown.min(ended.len())..] {
            print::text(out, &line(step, &usual, symbols))?;
        }
        shown = ended.len();
        if !operation["endTime"].is_null() {
            let error = &operation["error"];
            let status = text(&operation, "/status");
            if error.is_object() {
                let what = format!("the operation ended {status}");
                let why = format!("{}: {}", text(error, "/code"), text(error, "/message"));
                return Err(Failure::new("NT-FLEET-0010", Exit::Failed, &what, &why)
                    .remedy(format!("neap operations retry {}", text(&operation, "/id"))));
            }
            return print::text(out, &format!("{} {status}", symbols.done));
        }
        if provider.clock.uptime().saturating_sub(started) > options.timeout {
            let what = "the operation did not end in time";
            return Err(Failure::new(
                "NT-FLEET-0010",
                Exit::TimedOut,
                what,
                "it continues",
            ));
        }
        provider.clock.sleep(POLL).await;
    }
}

async fn cancel(
    options: &CancelOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let provider = Provider::connect(&options.operation.provider).await?;
    let operations = all(&provider).await?;
    let operation = find(&operations, options.operation.id.as_deref())?;
    let reason = neap_kit::client::percent_encoded(&options.reason);
    let path = format!("{}?reason={reason}", path(operation, "/cancel"));
    provider.call(Method::POST, &path, None).await?;
    let text = format!(
        "{} the operation {} is being cancelled",
        symbols.done,
        text(operation, "/id")
    );
    print::text(out, &text)
}

async fn retry(
    options: &OperationOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let provider = Provider::connect(&options.provider).await?;
    let operations = all(&provider).await?;
    let operation = find(&operations, options.id.as_deref())?;
    let path = path(operation, "/retry");
    let answer = provider.call(Method::POST, &path, None).await?.body;
    print::text(
        out,
        &format!("{} it runs again as {}", symbols.done, text(&answer, "/id")),
    )
}
