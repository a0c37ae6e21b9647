//! The screen.

use std::fmt::Write as _;

use neap_kit::explain::Verdict;

use super::{
    Line, Survey,
    survey::{CLAIMS, NODES, PODS, SERVICES, SLEEPERS, WORKLOADS},
};
use crate::symbols::Symbols;

/// Reasons for one object.
const REASONS: usize = 2;

/// The survey for people.
pub(super) fn text(survey: &Survey, symbols: Symbols) -> String {
    let Survey {
        address, version, ..
    } = survey;
    let mut text = format!(
        "Server     {address} {} Kubernetes {version}\n",
        symbols.dot
    );
    for (title, lines, kinds, empty) in groups(survey) {
        let unseen = survey.hidden(kinds);
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
        let with_namespace = survey.namespace.is_none();
        for line in lines {
            add(&mut text, line, with_namespace, symbols);
        }
    }
    text.push('\n');
    if !survey.hidden.is_empty() {
        let hidden = survey.hidden.join(", ");
        let _ = writeln!(
            text,
            "{} You may not read {hidden}: what they would say is missing here",
            symbols.note
        );
    }
    text + &summary(survey, symbols)
}

/// Title, lines, the kinds that they are of, and what to say if there is none.
type Part<'a> = (String, &'a [Line], &'a [&'a str], &'a str);

fn groups(survey: &Survey) -> [Part<'_>; 7] {
    let place = match &survey.namespace {
        Some(namespace) => format!(" in {namespace}"),
        None => " in all namespaces".to_owned(),
    };
    [
        (
            "Nodes".to_owned(),
            &survey.nodes,
            NODES,
            "none: pods stay where they are, and run nowhere",
        ),
        (
            format!("Workloads{place}"),
            &survey.workloads,
            WORKLOADS,
            "none",
        ),
        ("Pods that are not well".to_owned(), &survey.pods, PODS, ""),
        (
            format!("Services{place}"),
            &survey.services,
            SERVICES,
            "none",
        ),
        (
            format!("Services that may sleep{place}"),
            &survey.sleepers,
            SLEEPERS,
            "",
        ),
        (
            "Claims that are not bound".to_owned(),
            &survey.claims,
            CLAIMS,
            "",
        ),
        (
            "Operations under way".to_owned(),
            &survey.operations,
            &[],
            "",
        ),
    ]
}

fn add(text: &mut String, line: &Line, with_namespace: bool, symbols: Symbols) {
    let mark = match line.verdict {
        Verdict::Well if line.is_fine() => symbols.done,
        Verdict::Troubled | Verdict::Missing => symbols.failed,
        Verdict::Well | Verdict::OnItsWay | Verdict::Leaving => symbols.note,
    };
    let name = called(line, with_namespace);
    let _ = writeln!(text, "  {mark:<2} {name:<34} {}", line.detail);
    for why in line.why.iter().take(REASONS) {
        let _ = writeln!(text, "       {why}");
    }
}

fn called(line: &Line, with_namespace: bool) -> String {
    let kind = line.kind.to_ascii_lowercase();
    if with_namespace && !line.namespace.is_empty() {
        format!("{}/{kind}/{}", line.namespace, line.name)
    } else {
        format!("{kind}/{}", line.name)
    }
}

fn summary(survey: &Survey, symbols: Symbols) -> String {
    let unwell: Vec<_> = survey
        .lines()
        .filter(|line| line.verdict != Verdict::Well)
        .collect();
    let Some(first) = unwell.first() else {
        if !survey.hidden.is_empty() {
            return format!("{} All that you may see is well.", symbols.note);
        }
        return format!("{} All that is there is well.", symbols.done);
    };
    let kind = first.kind.to_ascii_lowercase();
    let namespace = if first.namespace.is_empty() {
        String::new()
    } else {
        format!(" -n {}", first.namespace)
    };
    let count = unwell.len();
    let (noun, are) = if count == 1 {
        ("object", "is")
    } else {
        ("objects", "are")
    };
    format!(
        "{} {count} {noun} {are} not well, or not yet. More of each: neap explain {kind}/{}{namespace}",
        symbols.note, first.name
    )
}
