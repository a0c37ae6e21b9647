//! Scenario files: requests and the answers to them, in Markdown.
//!
//! Each `##` section is a scenario in a repository of its own, `$repo`. A block `http` is a request:
//! method and path, headers, an empty line, the body. The block `answer` after it is its answer: the
//! status, headers, an empty line, and a JSON document that the body contains. `$name` stands for a
//! text that was kept; a header `Name: => $name` keeps its value; `~text` is a text that the value
//! contains. `$digest(text)` is the SHA-256 digest of a text, `$length(text)` its length,
//! and `$join(address)` what joins another parameter to an address.

use std::{collections::BTreeMap, fmt::Write};

use http::Method;
use neap_emulators::registry::Digest;
use neap_kit::client::{Client, Redirects, RetryPolicy, resolve};
use serde_json::Value;

const MAX_BODY: usize = 1 << 20;

/// A scenario.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    /// Whether only our registry is held to it, and the reason is in the text.
    pub(crate) only_ours: bool,
    steps: Vec<(String, String)>,
}

/// The scenarios of a file.
pub(crate) fn parse(text: &str) -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    for section in text.split("\n## ").skip(1) {
        let (name, rest) = section.split_once('\n').unwrap();
        let mut blocks = Vec::new();
        for part in rest.split("\n```").skip(1).step_by(2) {
            let (kind, block) = part.split_once('\n').unwrap_or((part, ""));
            blocks.push((kind.to_owned(), block.to_owned()));
        }
        let steps = blocks.chunks(2).map(|pair| match pair {
            [(http, request), (answer, expected)] if http == "http" && answer == "answer" => {
                (request.clone(), expected.clone())
            }
            _ => panic!("{name}: each request is followed by its answer"),
        });
        scenarios.push(Scenario {
            name: name.trim().to_owned(),
            only_ours: rest.contains("*Only ours:*"),
            steps: steps.collect(),
        });
    }
    scenarios
}

impl Scenario {
    /// Plays it against the registry at `base`; what is wrong, if anything.
    pub(crate) async fn play(&self, client: &Client, base: &str, repo: &str) -> Result<(), String> {
        let mut kept = BTreeMap::from([("repo".to_owned(), repo.to_owned())]);
        for (number, (request, expected)) in self.steps.iter().enumerate() {
            let played = step(client, base, request, expected, &mut kept).await;
            played.map_err(|problem| {
                format!("{}, step {}: {problem}\n{request}", self.name, number + 1)
            })?;
        }
        Ok(())
    }
}

async fn step(
    client: &Client,
    base: &str,
    request: &str,
    expected: &str,
    kept: &mut BTreeMap<String, String>,
) -> Result<(), String> {
    let request = filled(request, kept);
    let (head, body) = request.split_once("\n\n").unwrap_or((&request, ""));
    let mut lines = head.lines();
    let (method, path) = lines.next().unwrap_or_default().split_once(' ').unwrap();
    let base = base.parse().unwrap();
    let address = resolve(&base, path).unwrap().to_string();
    let method: Method = method.parse().unwrap();
    let mut call = client
        .request(method, address)
        .redirects(Redirects::Return)
        .retry(RetryPolicy::never());
    for line in lines.filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(": ").unwrap();
        call = call.header(name, value);
    }
    let body = body.strip_suffix('\n').unwrap_or(body);
    let answer = call.body(body.to_owned()).fetch(MAX_BODY).await;
    let answer = answer.map_err(|error| error.to_string())?;
    let shown = || {
        let mut text = format!("{}\n", answer.status);
        for (name, value) in &answer.headers {
            let _ = writeln!(text, "{name}: {value:?}");
        }
        text + &String::from_utf8_lossy(&answer.body)
    };
    let expected = filled(expected, kept);
    let (head, body) = expected.split_once("\n\n").unwrap_or((&expected, ""));
    let mut lines = head.lines();
    let statuses = lines.next().unwrap_or_default();
    let status = answer.status.as_u16().to_string();
    if !statuses.split(" or ").any(|wanted| wanted == status) {
        return Err(format!("not {statuses}: {}", shown()));
    }
    for line in lines.filter(|line| !line.is_empty()) {
        let (name, wanted) = line.split_once(": ").unwrap();
        let found = answer.header(name).unwrap_or_default();
        let fits = match (wanted.strip_prefix("=> $"), wanted.strip_prefix('~')) {
            (Some(variable), _) => {
                kept.insert(variable.to_owned(), found.to_owned());
                !found.is_empty()
            }
            (None, Some(part)) => found.contains(part),
            (None, None) => found == wanted,
        };
        if !fits {
            return Err(format!("not {line}: {}", shown()));
        }
    }
    check_body(body.trim(), &answer.body).map_err(|problem| format!("{problem}: {}", shown()))
}

fn check_body(wanted: &str, found: &[u8]) -> Result<(), String> {
    if wanted.is_empty() {
        return Ok(());
    }
    let Ok(wanted_json) = serde_json::from_str::<Value>(wanted) else {
        let same = found == wanted.as_bytes();
        return same.then_some(()).ok_or_else(|| format!("not {wanted}"));
    };
    let found: Value = serde_json::from_slice(found).map_err(|error| error.to_string())?;
    contains(&found, &wanted_json)
        .then_some(())
        .ok_or_else(|| format!("does not contain {wanted}"))
}

/// Whether `found` has everything of `wanted`; lists have the same length.
fn contains(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => wanted
            .iter()
            .all(|(name, value)| found.get(name).is_some_and(|it| contains(it, value))),
        (Value::Array(found), Value::Array(wanted)) => {
            let pairs = found.iter().zip(wanted);
            found.len() == wanted.len() && pairs.into_iter().all(|(a, b)| contains(a, b))
        }
        _ => found == wanted,
    }
}

/// The text with what was kept and computed in the places of their names.
fn filled(text: &str, kept: &BTreeMap<String, String>) -> String {
    let mut filled = text.to_owned();
    let mut names: Vec<_> = kept.keys().collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    for name in names {
        // A name that is being kept anew stays.
        filled = filled
            .replace(&format!("=> ${name}"), &format!("=> \u{0}{name}"))
            .replace(&format!("${name}"), &kept[name])
            .replace(&format!("=> \u{0}{name}"), &format!("=> ${name}"));
    }
    computed(filled)
}

/// Replaces each `$function(text)`, the innermost first; the text may itself contain pairs of
/// parentheses.
fn computed(mut text: String) -> String {
    const FUNCTIONS: [&str; 3] = ["$digest(", "$length(", "$join("];
    // Nothing after the last function contains another.
    while let Some((begin, function)) = FUNCTIONS
        .iter()
        .filter_map(|function| Some((text.rfind(function)?, *function)))
        .max()
    {
        let rest = &text[begin + function.len()..];
        let mut depth = 1;
        let end = rest.find(|c| {
            depth += match c {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
            depth == 0
        });
        let (argument, after) = rest.split_at(end.unwrap());
        let value = match function {
            "$digest(" => Digest::of(argument.as_bytes()).to_string(),
            "$length(" => argument.len().to_string(),
            _ if argument.contains('?') => "&".to_owned(),
            _ => "?".to_owned(),
        };
        text = format!("{}{value}{}", &text[..begin], &after[1..]);
    }
    text
}
