//! From fenced blocks to steps.

use std::time::Duration;

use serde_json::Value;

use super::{super::Failure, Block, EventPattern, ExpectedResponse, Request, Step, blocks::Fence};

type Located<T> = Result<T, (usize, Failure)>;

/// Pairs requests with their responses and parses every other block.
pub(super) fn steps(fences: Vec<Fence>) -> Located<Vec<Block>> {
    let mut found = Vec::new();
    let mut fences = fences.into_iter().peekable();
    while let Some(fence) = fences.next() {
        let line = fence.line;
        let here = |failure| (line, failure);
        let words: Vec<&str> = fence.info.iter().map(String::as_str).collect();
        let step = match words.as_slice() {
            ["text"] => continue,
            ["http" | "later", rest @ ..] => {
                let request = request(&fence.text, rest).map_err(here)?;
                let answered = fences.next_if(|next| next.info == ["answer"]);
                let answered = answered
                    .ok_or_else(|| here(Failure::new("no answer block follows this request")))?;
                let answer = answer(&answered.text).map_err(|failure| (answered.line, failure))?;
                if words[0] == "http" {
                    Step::Ask(request, answer)
                } else {
                    Step::Later(request, answer)
                }
            }
            ["watch", name] => {
                Step::Watch((*name).to_owned(), request(&fence.text, &[]).map_err(here)?)
            }
            ["events", name] => {
                Step::Events((*name).to_owned(), events(&fence.text).map_err(here)?)
            }
            ["wait"] => Step::Wait(duration(&fence.text).map_err(here)?),
            ["answer"] => return Err(here(Failure::new("no request stands before this answer"))),
            _ => {
                let text = format!(
                    "no such block: {:?}; use `text` for prose",
                    fence.info.join(" ")
                );
                return Err(here(Failure::new(text)));
            }
        };
        found.push(Block {
            line,
            heading: fence.heading,
            step,
        });
    }
    Ok(found)
}

fn request(text: &str, options: &[&str]) -> Result<Request, Failure> {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let first = lines.next().unwrap_or_default();
    let (method, path) = first
        .split_once(' ')
        .filter(|(_, path)| path.starts_with('/') && !path.contains(char::is_whitespace))
        .ok_or_else(|| Failure::new(format!("not a request line: {first:?}")))?;
    Ok(Request {
        method: method.into(),
        path: path.into(),
        headers: lines.map(header).collect::<Result<_, _>>()?,
        body: body.trim_end().into(),
        encoded: match options {
            [] => false,
            ["base64"] => true,
            other => return Err(Failure::new(format!("no such option: {other:?}"))),
        },
    })
}

fn answer(text: &str) -> Result<ExpectedResponse, Failure> {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let first = lines.next().unwrap_or_default().trim();
    let (code, reason) = first.split_once(' ').unwrap_or((first, ""));
    let code = code.parse().map_err(|_| {
        Failure::new(format!(
            "an answer begins with a status code, not {first:?}"
        ))
    })?;
    if code < 400 && !reason.is_empty() {
        return Err(Failure::new("only a refusal has a reason"));
    }
    Ok(ExpectedResponse {
        code,
        reason: (!reason.is_empty()).then(|| reason.to_owned()),
        headers: lines.map(header).collect::<Result<_, _>>()?,
        body: if body.trim().is_empty() {
            None
        } else {
            Some(yaml(body)?)
        },
    })
}

fn header(line: &str) -> Result<(String, String), Failure> {
    let (name, value) = line
        .split_once(':')
        .ok_or_else(|| Failure::new(format!("not a header: {line:?}")))?;
    Ok((name.trim().to_ascii_lowercase(), value.trim().into()))
}

fn events(text: &str) -> Result<Vec<EventPattern>, Failure> {
    let Value::Array(entries) = yaml(text)? else {
        return Err(Failure::new("events are a list"));
    };
    if entries.is_empty() {
        return Err(Failure::new("no events are expected; say `- quiet`"));
    }
    entries.into_iter().map(event).collect()
}

fn event(entry: Value) -> Result<EventPattern, Failure> {
    match entry {
        Value::String(word) if word == "end" => Ok(EventPattern::End),
        Value::String(word) if word == "quiet" => Ok(EventPattern::Quiet),
        Value::Object(fields) if fields.len() == 1 => {
            let (kind, pattern) = fields.into_iter().next().unwrap_or_default();
            Ok(EventPattern::Event(kind, pattern))
        }
        other => Err(Failure::new(format!(
            "an event is `TYPE: pattern`, `end` or `quiet`, not {other}"
        ))),
    }
}

fn duration(text: &str) -> Result<Duration, Failure> {
    let text = text.trim();
    let seconds = text
        .strip_suffix('s')
        .and_then(|number| number.parse().ok());
    let seconds = seconds.ok_or_else(|| Failure::new(format!("not seconds: {text:?}")))?;
    Ok(Duration::from_secs(seconds))
}

fn yaml(text: &str) -> Result<Value, Failure> {
    serde_saphyr::from_str(text).map_err(|error| Failure::new(format!("not YAML: {error}")))
}
