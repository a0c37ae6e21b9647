//! Checks the schedules of CronJobs: five fields, or a word such as `@hourly`.
//!
//! Only the syntax is checked; the controller computes when a schedule fires.

use std::ops::RangeInclusive;

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const WORDS: [&str; 7] = [
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
];

/// Units of an interval after `@every`, longest first so that `ms` is not read as minutes.
const UNITS: [&str; 8] = ["ns", "us", "µs", "μs", "ms", "h", "m", "s"];

/// One of the five fields of a schedule.
struct ScheduleField {
    range: RangeInclusive<u32>,
    /// Names of the values, counted from the start of the range.
    names: &'static [&'static str],
}

const PLACES: [ScheduleField; 5] = [
    ScheduleField::numbers(0..=59),
    ScheduleField::numbers(0..=23),
    ScheduleField::numbers(1..=31),
    ScheduleField {
        range: 1..=12,
        names: &MONTHS,
    },
    ScheduleField {
        range: 0..=6,
        names: &DAYS,
    },
];

/// Why a schedule is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Error {
    #[error("empty spec string")]
    Empty,
    #[error("expected exactly 5 fields, found {found}: [{fields}]")]
    FieldCount { found: usize, fields: String },
    #[error("unrecognized descriptor: {0}")]
    Word(String),
    #[error("failed to parse duration {0}")]
    Interval(String),
    #[error("failed to parse int from {0}")]
    NotANumber(String),
    #[error("{kind} of range ({value}) {relation} {limit_kind} ({limit}): {text}")]
    OutOfRange {
        kind: &'static str,
        value: u32,
        relation: &'static str,
        limit_kind: &'static str,
        limit: u32,
        text: String,
    },
    #[error("beginning of range ({start}) beyond end of range ({end}): {text}")]
    Backwards { start: u32, end: u32, text: String },
    #[error("step of range should be a positive number: {0}")]
    ZeroStep(String),
    #[error("too many hyphens: {0}")]
    Hyphens(String),
    #[error("too many slashes: {0}")]
    Slashes(String),
}

/// Validates a schedule.
pub(super) fn check(schedule: &str) -> Result<(), Error> {
    if schedule.is_empty() {
        return Err(Error::Empty);
    }
    if schedule.starts_with('@') {
        return check_word(schedule);
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != PLACES.len() {
        return Err(Error::FieldCount {
            found: fields.len(),
            fields: fields.join(" "),
        });
    }
    for (place, field) in PLACES.iter().zip(fields) {
        // Empty parts between commas are skipped, as the real parser does.
        for part in field.split(',').filter(|part| !part.is_empty()) {
            place.check(part)?;
        }
    }
    Ok(())
}

fn check_word(schedule: &str) -> Result<(), Error> {
    if let Some(interval) = schedule.strip_prefix("@every ") {
        return if is_interval(interval) {
            Ok(())
        } else {
            Err(Error::Interval(schedule.into()))
        };
    }
    if WORDS.contains(&schedule) {
        Ok(())
    } else {
        Err(Error::Word(schedule.into()))
    }
}

/// Numbers with units, as `1h30m` or `1.5h`; a sign may come first and zero needs no unit.
fn is_interval(text: &str) -> bool {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let after = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let number = &rest[..rest.len() - after.len()];
        if number.parse::<f64>().is_err() {
            return false;
        }
        let Some(next) = UNITS.iter().find_map(|unit| after.strip_prefix(unit)) else {
            return false;
        };
        rest = next;
    }
    true
}

impl ScheduleField {
    const fn numbers(range: RangeInclusive<u32>) -> Self {
        Self { range, names: &[] }
    }

    /// `value`, `value-value`, `*` or `?`, each with an optional `/step`.
    fn check(&self, part: &str) -> Result<(), Error> {
        let mut slashes = part.split('/');
        let span = slashes.next().unwrap_or_default();
        let step = slashes.next();
        if slashes.next().is_some() {
            return Err(Error::Slashes(part.into()));
        }
        let (start, end) = self.span(span, step.is_some(), part)?;
        let step = step.map_or(Ok(1), number)?;
        let (first, last) = (*self.range.start(), *self.range.end());
        if start < first {
            return Err(out_of_range(
                "beginning",
                start,
                "below minimum",
                first,
                part,
            ));
        }
        if end > last {
            return Err(out_of_range("end", end, "above maximum", last, part));
        }
        if start > end {
            let text = part.into();
            return Err(Error::Backwards { start, end, text });
        }
        if step == 0 {
            return Err(Error::ZeroStep(part.into()));
        }
        Ok(())
    }

    fn span(&self, span: &str, stepped: bool, part: &str) -> Result<(u32, u32), Error> {
        let mut ends = span.split('-');
        let start = ends.next().unwrap_or_default();
        let end = ends.next();
        if ends.next().is_some() {
            return Err(Error::Hyphens(part.into()));
        }
        if start == "*" || start == "?" {
            return Ok((*self.range.start(), *self.range.end()));
        }
        let start = self.value(start)?;
        match end {
            Some(end) => Ok((start, self.value(end)?)),
            // `5/10` means from 5 to the end, every 10.
            None if stepped => Ok((start, *self.range.end())),
            None => Ok((start, start)),
        }
    }

    fn value(&self, text: &str) -> Result<u32, Error> {
        let named = self
            .names
            .iter()
            .position(|name| name.eq_ignore_ascii_case(text));
        match named {
            Some(position) => Ok(self.range.start() + position as u32),
            None => number(text),
        }
    }
}

fn number(text: &str) -> Result<u32, Error> {
    text.parse().map_err(|_| Error::NotANumber(text.into()))
}

fn out_of_range(
    kind: &'static str,
    value: u32,
    relation: &'static str,
    limit: u32,
    part: &str,
) -> Error {
    let (relation, limit_kind) = relation.split_once(' ').unwrap_or((relation, ""));
    Error::OutOfRange {
        kind,
        value,
        relation,
        limit_kind,
        limit,
        text: part.into(),
    }
}

#[cfg(test)]
mod tests;
