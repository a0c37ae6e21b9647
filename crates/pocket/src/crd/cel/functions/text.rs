//! Functions on strings.

use std::borrow::Cow;

use super::{super::value::Text, CallResult, Evaluator, Fault, Val, format};
use crate::crd::pattern::{WeighedPattern, weighed};

pub(super) fn method<'a>(
    machine: &Evaluator<'_>,
    name: &str,
    text: &Text<'a>,
    args: &[Val<'a>],
) -> CallResult<'a> {
    if let Err(fault) = machine.meter.spend_text(text.len()) {
        return Some(Err(fault));
    }
    Some(match (name, args) {
        ("size", []) => Ok(Val::Int(text.chars().count() as i64)),
        ("contains", [Val::Text(part)]) => Ok(Val::Bool(text.contains(&**part))),
        ("startsWith", [Val::Text(part)]) => Ok(Val::Bool(text.starts_with(&**part))),
        ("endsWith", [Val::Text(part)]) => Ok(Val::Bool(text.ends_with(&**part))),
        ("lowerAscii", []) => Ok(Val::text(text.to_ascii_lowercase())),
        ("upperAscii", []) => Ok(Val::text(text.to_ascii_uppercase())),
        ("trim", []) => Ok(Val::text(text.trim())),
        ("charAt", [Val::Int(at)]) => char_at(text, *at),
        ("substring", [Val::Int(from)]) => substring(text, *from, None),
        ("substring", [Val::Int(from), Val::Int(to)]) => substring(text, *from, Some(*to)),
        ("indexOf", [Val::Text(part)]) => Ok(Val::Int(index_of(text, part, 0))),
        ("indexOf", [Val::Text(part), Val::Int(from)]) => Ok(Val::Int(index_of(text, part, *from))),
        ("lastIndexOf", [Val::Text(part)]) => Ok(Val::Int(char_index(text, text.rfind(&**part)))),
        ("lastIndexOf", [Val::Text(part), Val::Int(to)]) => {
            Ok(Val::Int(last_index_of(text, part, *to)))
        }
        ("replace", [Val::Text(from), Val::Text(to)]) => replace(machine, text, from, to, -1),
        ("replace", [Val::Text(from), Val::Text(to), Val::Int(most)]) => {
            replace(machine, text, from, to, *most)
        }
        ("split", [Val::Text(at)]) => split(machine, text, at, -1),
        ("split", [Val::Text(at), Val::Int(most)]) => split(machine, text, at, *most),
        ("format", [Val::List(values)]) => format::format(machine, text, values),
        ("matches", [Val::Text(source)]) => {
            regex(machine, source, text).map(|p| Val::Bool(p.regex.is_match(text)))
        }
        ("find", [Val::Text(source)]) => regex(machine, source, text).map(|p| {
            let found = p.regex.find(text).map_or("", |found| found.as_str());
            Val::text(found)
        }),
        ("findAll", [Val::Text(source)]) => find_all(machine, text, source, -1),
        ("findAll", [Val::Text(source), Val::Int(most)]) => find_all(machine, text, source, *most),
        _ => return None,
    })
}

/// Steps for compiling a regular expression that is not a literal; it is the most expensive step.
const REGEX_COMPILE_STEPS: usize = 20_000;

/// The regular expression, with the search through `text` charged. A literal one was compiled with
/// the rule; any other is compiled now, and may not be a heavy one.
fn regex<'m>(
    machine: &'m Evaluator<'_>,
    source: &str,
    text: &str,
) -> Result<Cow<'m, WeighedPattern>, Fault> {
    let pattern = if let Some(pattern) = machine.program.patterns.get(source) {
        Cow::Borrowed(pattern)
    } else {
        machine.meter.spend(REGEX_COMPILE_STEPS + source.len())?;
        let made = weighed(source, 4);
        Cow::Owned(
            made.map_err(|error| Fault::Error(format!("invalid regular expression: {error}")))?,
        )
    };
    machine.meter.spend(1 + text.len() * pattern.weight)?;
    Ok(pattern)
}

fn find_all<'a>(
    machine: &Evaluator<'_>,
    text: &str,
    source: &str,
    most: i64,
) -> super::Evaluation<'a> {
    let pattern = regex(machine, source, text)?;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut found = Vec::new();
    for part in pattern.regex.find_iter(text).take(most) {
        machine.meter.spend_text(part.len())?;
        found.push(Val::text(part.as_str()));
    }
    Ok(Val::list(found))
}

fn out_of_range<T>(at: i64) -> Result<T, Fault> {
    Fault::error(format!("index out of range: {at}"))
}

/// The byte offset of a character index; the end counts too.
fn offset(text: &str, at: i64) -> Result<usize, Fault> {
    let Ok(index) = usize::try_from(at) else {
        return out_of_range(at);
    };
    let mut offsets = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    offsets.nth(index).map_or_else(|| out_of_range(at), Ok)
}

fn char_at<'a>(text: &str, at: i64) -> super::Evaluation<'a> {
    let offset = offset(text, at)?;
    let found: String = text[offset..].chars().take(1).collect();
    Ok(Val::text(found))
}

fn substring<'a>(text: &str, from: i64, to: Option<i64>) -> super::Evaluation<'a> {
    let start = offset(text, from)?;
    let end = to.map_or(Ok(text.len()), |to| offset(text, to))?;
    match text.get(start..end) {
        Some(part) => Ok(Val::text(part)),
        None => Fault::error(format!(
            "invalid substring range: {from}, {}",
            to.unwrap_or(0)
        )),
    }
}

fn char_index(text: &str, offset: Option<usize>) -> i64 {
    offset.map_or(-1, |offset| text[..offset].chars().count() as i64)
}

fn index_of(text: &str, part: &str, from: i64) -> i64 {
    let Ok(start) = offset(text, from) else {
        return -1;
    };
    char_index(text, text[start..].find(part).map(|at| at + start))
}

fn last_index_of(text: &str, part: &str, to: i64) -> i64 {
    let Ok(last) = offset(text, to) else {
        return char_index(text, text.rfind(part));
    };
    let end = (last + part.len()).min(text.len());
    char_index(text, text.get(..end).and_then(|head| head.rfind(part)))
}

fn replace<'a>(
    machine: &Evaluator<'_>,
    text: &str,
    from: &str,
    to: &str,
    most: i64,
) -> super::Evaluation<'a> {
    let limit = usize::try_from(most).unwrap_or(usize::MAX);
    let places = if from.is_empty() {
        text.chars().count() + 1
    } else {
        text.matches(from).count()
    };
    // Charged before the text is made, so that it cannot grow past the budget.
    let grown = places.min(limit).saturating_mul(to.len());
    machine.meter.spend_text(text.len().saturating_add(grown))?;
    Ok(Val::text(text.replacen(from, to, limit)))
}

fn split<'a>(machine: &Evaluator<'_>, text: &str, at: &str, most: i64) -> super::Evaluation<'a> {
    let most = match usize::try_from(most) {
        Ok(0) => return Ok(Val::list(Vec::new())),
        Ok(most) => most,
        Err(_) => usize::MAX,
    };
    machine.meter.spend(1 + text.len())?;
    let parts = if at.is_empty() {
        text.chars()
            .take(most)
            .map(|c| Val::text(c.to_string()))
            .collect()
    } else {
        text.splitn(most, at).map(Val::text).collect()
    };
    Ok(Val::list(parts))
}
