//! Parses the text of plans, and reports errors with their line.

use std::{fmt, str::SplitWhitespace, time::Duration};

use super::{Action, ActorFilter, Fault, Filter, Nth, Plan, Point, Rule, Verb, plural};

/// An error in the text of a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ParseError {
    /// The line number, starting at 1.
    pub line: usize,
    /// The line itself.
    pub text: String,
    pub problem: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            line,
            text,
            problem,
        } = self;
        write!(f, "line {line}: {problem}\n  | {text}")
    }
}

/// Parses the plans of a text. Empty lines and text after `//` are ignored.
pub fn parse(text: &str) -> Result<Vec<Plan>, ParseError> {
    let mut plans: Vec<Plan> = Vec::new();
    for (index, raw) in text.lines().enumerate() {
        let line = raw.split("//").next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        read(line, &mut plans).map_err(|problem| ParseError {
            line: index + 1,
            text: raw.trim().to_owned(),
            problem,
        })?;
    }
    match plans.iter().find(|plan| plan.workload.is_empty()) {
        Some(plan) => Err(ParseError {
            line: text.lines().count(),
            text: format!("plan {}", plan.name),
            problem: "the plan names no workload: `workload NAME seed N`".to_owned(),
        }),
        None => Ok(plans),
    }
}

fn read(line: &str, plans: &mut Vec<Plan>) -> Result<(), String> {
    let mut tokens = TokenReader(line.split_whitespace());
    match tokens.next("`plan`, `workload` or `on`")? {
        "plan" => {
            let name = tokens.next("a name")?;
            plans.push(Plan {
                name: name.to_owned(),
                ..Plan::without_faults("", 0)
            });
        }
        "workload" => {
            let plan = plans.last_mut().ok_or("no plan has begun: `plan NAME`")?;
            tokens.next("a workload")?.clone_into(&mut plan.workload);
            tokens.expect("seed")?;
            plan.seed = tokens.number("a seed")?;
        }
        "on" => {
            let plan = plans.last_mut().ok_or("no plan has begun: `plan NAME`")?;
            plan.rules.push(rule(&mut tokens)?);
        }
        other => {
            return Err(format!(
                "`{other}` begins no line; `plan`, `workload` and `on` do"
            ));
        }
    }
    tokens.end()
}

fn rule(tokens: &mut TokenReader<'_>) -> Result<Rule, String> {
    let point = point(tokens.next("a point")?)?;
    let mut filter = Filter::default();
    let mut nth = Nth::Every(1);
    loop {
        let word = tokens.next("`for` and an actor")?;
        if word == "for" {
            break;
        }
        if word == "do" {
            return Err("`for` and an actor should come before `do`: `for any`".to_owned());
        }
        if let Some(range) = word.strip_prefix('#') {
            nth = self::nth(range, tokens)?;
        } else {
            narrow(&mut filter, word)?;
        }
    }
    let actor = match tokens.next("an actor")? {
        "any" => ActorFilter::Any,
        name => ActorFilter::Named(name.to_owned()),
    };
    tokens.expect("do")?;
    let action = action(tokens)?;
    if let Some(problem) = action.misplaced(point) {
        return Err(format!("{action} cannot happen at {point}: {problem}"));
    }
    let outside = matches!(point, Point::ExtBefore | Point::ExtAfter);
    if outside && (filter.verb.is_some() || filter.kind.is_some()) {
        return Err(format!("{point} has only the filters call= and name="));
    }
    if !outside && filter.call.is_some() {
        return Err(format!(
            "call= is of ext.before and ext.after, not of {point}"
        ));
    }
    Ok(Rule {
        point,
        filter,
        nth,
        actor,
        action,
    })
}

fn point(word: &str) -> Result<Point, String> {
    if let Some(point) = Point::ALL.into_iter().find(|point| point.word() == word) {
        return Ok(point);
    }
    let known = Point::ALL.map(Point::word).join(", ");
    if Point::UNSUPPORTED.contains(&word) {
        return Err(format!(
            "a run in one process has no point {word}; it has {known}"
        ));
    }
    Err(format!("there is no point {word}; there are {known}"))
}

fn nth(range: &str, tokens: &mut TokenReader<'_>) -> Result<Nth, String> {
    let number = |text: &str| match text.parse() {
        Ok(0) | Err(_) => Err(format!("#{range} is no count: the first is #1")),
        Ok(number) => Ok(number),
    };
    if range == "every" {
        let step = tokens.next("how many")?;
        let known = step.parse().ok().filter(|&step| step > 0);
        let known = known.ok_or_else(|| format!("#every {step} is no step: #every 1 is each"));
        return Ok(Nth::Every(known?));
    }
    let Some((first, last)) = range.split_once("..") else {
        return Ok(Nth::At(number(range)?));
    };
    let (first, last) = (number(first)?, number(last)?);
    if first > last {
        return Err(format!(
            "#{range} has nothing in it: write #{last}..{first}"
        ));
    }
    Ok(Nth::Span(first, last))
}

fn narrow(filter: &mut Filter, word: &str) -> Result<(), String> {
    let known = "verb=, kind=, ns=, name= and call=";
    let (field, value) = word
        .split_once('=')
        .ok_or_else(|| format!("`{word}` is no filter; there are {known}"))?;
    match field {
        "verb" => {
            let verb = Verb::ALL.into_iter().find(|verb| verb.word() == value);
            let known = || Verb::ALL.map(Verb::word).join(", ");
            let verb =
                verb.ok_or_else(|| format!("there is no verb {value}; there are {}", known()));
            filter.verb = Some(verb?);
        }
        "kind" => filter.kind = Some(kind(value)),
        "ns" => filter.namespace = Some(value.to_owned()),
        "name" => filter.name = Some(value.to_owned()),
        "call" => filter.call = Some(value.to_owned()),
        other => return Err(format!("there is no filter {other}; there are {known}")),
    }
    Ok(())
}

/// A kind, optionally with a subresource.
fn kind(text: &str) -> String {
    match text.split_once('/') {
        Some((kind, part)) => format!("{}/{part}", plural(kind)),
        None => plural(text),
    }
}

fn action(tokens: &mut TokenReader<'_>) -> Result<Action, String> {
    Ok(match tokens.next("an action")? {
        "crash" => match tokens.peek() {
            Some("stale") => {
                tokens.expect("stale")?;
                Action::CrashStale(tokens.number("how many changes")? as usize, kinds(tokens))
            }
            _ => Action::Crash,
        },
        "pause" => Action::Pause(tokens.span()?),
        "delay" => Action::Delay(tokens.span()?),
        "merge" => Action::Merge(tokens.span()?),
        "fail" => Action::Fail(fault(tokens)?),
        "conflict" => {
            tokens.expect("x")?;
            Action::Conflict(tokens.number("how many times")? as u32)
        }
        "lag" => {
            let events = tokens.number("how many changes")? as usize;
            let kinds = kinds(tokens);
            tokens.expect("until")?;
            Action::Lag(events, kinds, tokens.span()?)
        }
        "reset" => Action::Reset,
        "gone" => Action::Gone,
        "dup" => Action::Twice,
        "lose" => Action::Lose,
        "truncate" => Action::Truncate(tokens.number("how many bytes")?),
        "corrupt" => Action::Corrupt(tokens.number("which byte")?),
        other => {
            return Err(format!(
                "a run in one process has no action {other}; it has crash, crash stale, pause, \
                 delay, merge, fail, conflict, lag, reset, gone, dup, lose, truncate and corrupt"
            ));
        }
    })
}

fn fault(tokens: &mut TokenReader<'_>) -> Result<Fault, String> {
    let code = tokens.number("a code")?;
    let code = u16::try_from(code)
        .ok()
        .filter(|code| (400..600).contains(code));
    let code = code.ok_or("a refusal has a code from 400 to 599")?;
    let retry_after = match tokens.peek() {
        Some("retry-after") => {
            tokens.expect("retry-after")?;
            Some(tokens.span()?)
        }
        _ => None,
    };
    Ok(Fault { code, retry_after })
}

fn kinds(tokens: &mut TokenReader<'_>) -> Vec<String> {
    let named = tokens.peek().and_then(|word| word.strip_prefix("kinds="));
    let kinds = named.map(|kinds| kinds.split(',').map(kind).collect());
    if kinds.is_some() {
        tokens.0.next();
    }
    kinds.unwrap_or_default()
}

/// The remaining words of a line.
struct TokenReader<'a>(SplitWhitespace<'a>);

impl<'a> TokenReader<'a> {
    fn next(&mut self, wanted: &str) -> Result<&'a str, String> {
        self.0
            .next()
            .ok_or_else(|| format!("the line ends where {wanted} should follow"))
    }

    fn peek(&self) -> Option<&'a str> {
        self.0.clone().next()
    }

    fn expect(&mut self, word: &str) -> Result<(), String> {
        match self.next(&format!("`{word}`"))? {
            found if found == word => Ok(()),
            found => Err(format!("`{word}` should follow, not `{found}`")),
        }
    }

    fn number(&mut self, wanted: &str) -> Result<u64, String> {
        let word = self.next(wanted)?;
        word.parse()
            .map_err(|_| format!("`{word}` is no number; {wanted} should follow"))
    }

    fn span(&mut self) -> Result<Duration, String> {
        let word = self.next("a time")?;
        let (digits, unit) = match word.strip_suffix("ms") {
            Some(digits) => (digits, 1),
            None => (word.strip_suffix('s').unwrap_or_default(), 1000),
        };
        let number: u64 = digits
            .parse()
            .map_err(|_| format!("`{word}` is no time; write 5s or 200ms"))?;
        Ok(Duration::from_millis(number * unit))
    }

    fn end(mut self) -> Result<(), String> {
        match self.0.next() {
            Some(word) => Err(format!("nothing should follow, and `{word}` does")),
            None => Ok(()),
        }
    }
}
