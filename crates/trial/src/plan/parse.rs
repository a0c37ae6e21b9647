//! Reads the text of plans, and says where it is wrong.

use std::{fmt, str::SplitWhitespace, time::Duration};

use super::{Action, Fault, Filter, Nth, Plan, Point, Rule, Verb, Who, plural};

/// What is wrong with a text, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ParseError {
    /// The line, the first being 1.
    pub line: usize,
    /// The line itself.
    pub text: String,
    /// What is wrong.
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

/// The plans of a text. Empty lines and what follows `//` are for people.
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
    let mut words = Words(line.split_whitespace());
    match words.next("`plan`, `workload` or `on`")? {
        "plan" => {
            let name = words.next("a name")?;
            plans.push(Plan {
                name: name.to_owned(),
                ..Plan::calm("", 0)
            });
        }
        "workload" => {
            let plan = plans.last_mut().ok_or("no plan has begun: `plan NAME`")?;
            words.next("a workload")?.clone_into(&mut plan.workload);
            words.expect("seed")?;
            plan.seed = words.number("a seed")?;
        }
        "on" => {
            let plan = plans.last_mut().ok_or("no plan has begun: `plan NAME`")?;
            plan.rules.push(rule(&mut words)?);
        }
        other => {
            return Err(format!(
                "`{other}` begins no line; `plan`, `workload` and `on` do"
            ));
        }
    }
    words.end()
}

fn rule(words: &mut Words<'_>) -> Result<Rule, String> {
    let point = point(words.next("a point")?)?;
    let mut filter = Filter::default();
    let mut nth = Nth::Every(1);
    loop {
        let word = words.next("`for` and an actor")?;
        if word == "for" {
            break;
        }
        if word == "do" {
            return Err("`for` and an actor should come before `do`: `for any`".to_owned());
        }
        if let Some(range) = word.strip_prefix('#') {
            nth = self::nth(range, words)?;
        } else {
            narrow(&mut filter, word)?;
        }
    }
    let actor = match words.next("an actor")? {
        "any" => Who::Any,
        name => Who::Named(name.to_owned()),
    };
    words.expect("do")?;
    let action = action(words)?;
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
    if Point::ELSEWHERE.contains(&word) {
        return Err(format!(
            "a run in one process has no point {word}; it has {known}"
        ));
    }
    Err(format!("there is no point {word}; there are {known}"))
}

fn nth(range: &str, words: &mut Words<'_>) -> Result<Nth, String> {
    let number = |text: &str| match text.parse() {
        Ok(0) | Err(_) => Err(format!("#{range} is no count: the first is #1")),
        Ok(number) => Ok(number),
    };
    if range == "every" {
        let step = words.next("how many")?;
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

/// A kind, and perhaps its subresource.
fn kind(text: &str) -> String {
    match text.split_once('/') {
        Some((kind, part)) => format!("{}/{part}", plural(kind)),
        None => plural(text),
    }
}

fn action(words: &mut Words<'_>) -> Result<Action, String> {
    Ok(match words.next("an action")? {
        "crash" => match words.peek() {
            Some("stale") => {
                words.expect("stale")?;
                Action::CrashStale(words.number("how many changes")? as usize, kinds(words))
            }
            _ => Action::Crash,
        },
        "pause" => Action::Pause(words.span()?),
        "delay" => Action::Delay(words.span()?),
        "merge" => Action::Merge(words.span()?),
        "fail" => Action::Fail(fault(words)?),
        "conflict" => {
            words.expect("x")?;
            Action::Conflict(words.number("how many times")? as u32)
        }
        "lag" => {
            let events = words.number("how many changes")? as usize;
            let kinds = kinds(words);
            words.expect("until")?;
            Action::Lag(events, kinds, words.span()?)
        }
        "reset" => Action::Reset,
        "gone" => Action::Gone,
        "dup" => Action::Twice,
        other => {
            return Err(format!(
                "a run in one process has no action {other}; it has crash, crash stale, pause, \
                 delay, merge, fail, conflict, lag, reset, gone and dup"
            ));
        }
    })
}

fn fault(words: &mut Words<'_>) -> Result<Fault, String> {
    let code = words.number("a code")?;
    let code = u16::try_from(code)
        .ok()
        .filter(|code| (400..600).contains(code));
    let code = code.ok_or("a refusal has a code from 400 to 599")?;
    let retry_after = match words.peek() {
        Some("retry-after") => {
            words.expect("retry-after")?;
            Some(words.span()?)
        }
        _ => None,
    };
    Ok(Fault { code, retry_after })
}

fn kinds(words: &mut Words<'_>) -> Vec<String> {
    let named = words.peek().and_then(|word| word.strip_prefix("kinds="));
    let kinds = named.map(|kinds| kinds.split(',').map(kind).collect());
    if kinds.is_some() {
        words.0.next();
    }
    kinds.unwrap_or_default()
}

/// The words of a line that are left.
struct Words<'a>(SplitWhitespace<'a>);

impl<'a> Words<'a> {
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
