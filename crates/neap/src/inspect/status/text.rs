//! The status report as text.

use std::fmt::Write as _;

use neap_kit::explain::Verdict;

use super::{
    ObjectStatus, StatusReport,
    report::{CLAIMS, NODES, PODS, SERVICES, WORKLOADS},
};
use crate::{printable::printable_line, symbols::Symbols};

/// Reasons that are shown per object.
const MAX_REASONS: usize = 2;
/// The least width of the column of names; a section with a longer name has a wider one.
const NAME_WIDTH: usize = 34;
/// What is said about a problem that needs no action any more.
const REPLACED: &str = "replaced by a newer release";

/// Renders the report.
pub(super) fn text(report: &StatusReport, symbols: Symbols) -> String {
    let StatusReport {
        address, version, ..
    } = report;
    let mut text = format!(
        "Server     {address} {} Kubernetes {version}\n",
        symbols.dot
    );
    for section in sections(report) {
        let Section {
            title,
            objects: lines,
            kinds,
            empty,
        } = section;
        let unseen = report.hidden(&kinds);
        if lines.is_empty() && empty.is_empty() && unseen.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n{title}");
        if !unseen.is_empty() {
            let unseen = unseen.join(", ");
            let _ = writeln!(text, "  {:<2} you may not read: {unseen}", symbols.note);
        } else if lines.is_empty() {
            let _ = writeln!(text, "  {empty}");
        }
        let with_namespace = report.namespace.is_none();
        let names = lines.iter().map(|line| display_name(line, with_namespace));
        let names: Vec<_> = names.collect();
        let width = names.iter().map(|it| it.chars().count()).max();
        let width = width.unwrap_or_default().max(NAME_WIDTH);
        for (line, name) in lines.iter().zip(names) {
            add(&mut text, line, &format!("{name:<width$}"), symbols);
        }
    }
    text.push('\n');
    if !report.hidden.is_empty() {
        let hidden = report.hidden.join(", ");
        let _ = writeln!(
            text,
            "{} You may not read {hidden}, so the report is incomplete",
            symbols.note
        );
    }
    text + &summary(report, symbols)
}

/// A section of the report.
struct Section<'a> {
    title: String,
    objects: &'a [ObjectStatus],
    kinds: Vec<&'a str>,
    /// The text for an empty section. An empty text omits the section.
    empty: &'static str,
}

fn sections(report: &StatusReport) -> Vec<Section<'_>> {
    let scope = match &report.namespace {
        Some(namespace) => format!(" in {namespace}"),
        None => " in all namespaces".to_owned(),
    };
    let section = |title: &str, objects, kinds: &[&'static str], empty| Section {
        title: title.to_owned(),
        objects,
        kinds: kinds.to_vec(),
        empty,
    };
    let nothing = "none: pods stay pending";
    let workloads = format!("Workloads{scope}");
    let services = format!("Services{scope}");
    let mut sections = vec![
        section("Nodes", &report.nodes, NODES, nothing),
        section(&workloads, &report.workloads, WORKLOADS, "none"),
        section("Pods with problems", &report.pods, PODS, ""),
        section(&services, &report.services, SERVICES, "none"),
    ];
    sections.extend(report.areas.0.iter().map(|(kind, objects)| {
        let scope = if kind.resource.namespaced {
            &*scope
        } else {
            ""
        };
        let title = format!("{}{scope}", kind.title);
        section(&title, objects, &[kind.resource.name], "")
    }));
    sections.extend([
        section("Unbound claims", &report.claims, CLAIMS, ""),
        section("Operations in progress", &report.operations, &[], ""),
    ]);
    sections
}

fn add(text: &mut String, line: &ObjectStatus, name: &str, symbols: Symbols) {
    let mark = match line.verdict {
        _ if line.is_replaced() => symbols.dot,
        Verdict::Healthy if line.is_fine() => symbols.done,
        Verdict::Degraded | Verdict::NotFound => symbols.failed,
        Verdict::Healthy | Verdict::Progressing | Verdict::Terminating => symbols.note,
    };
    let detail = printable_line(&line.detail);
    let _ = writeln!(text, "  {mark:<2} {name} {detail}");
    if line.is_replaced() {
        let _ = writeln!(text, "       {REPLACED}");
        return;
    }
    for why in line.why.iter().take(MAX_REASONS) {
        let _ = writeln!(text, "       {}", printable_line(why));
    }
}

fn display_name(line: &ObjectStatus, with_namespace: bool) -> String {
    let kind = line.kind.to_ascii_lowercase();
    if with_namespace && !line.namespace.is_empty() {
        format!("{}/{kind}/{}", line.namespace, line.name)
    } else {
        format!("{kind}/{}", line.name)
    }
}

fn summary(report: &StatusReport, symbols: Symbols) -> String {
    let with_problems: Vec<_> = report
        .objects_listed()
        .filter(|line| line.verdict != Verdict::Healthy && !line.is_replaced())
        .collect();
    let Some(first) = with_problems.first() else {
        if !report.hidden.is_empty() {
            return format!("{} No problems in what you may read.", symbols.note);
        }
        return format!("{} No problems.", symbols.done);
    };
    let kind = first.kind.to_ascii_lowercase();
    let namespace = if first.namespace.is_empty() {
        String::new()
    } else {
        format!(" -n {}", first.namespace)
    };
    let count = with_problems.len();
    let noun = if count == 1 {
        "object is"
    } else {
        "objects are"
    };
    format!(
        "{} {count} {noun} not ready. For details: neap explain {kind}/{}{namespace}",
        symbols.note, first.name
    )
}
