//! Parsing a path.

use serde_json::Value;

use super::{FilterExpression, FilterOperator, Operand, PathStep};

/// Steps of a path, at most: more than any object is deep.
const MAX_STEPS: usize = 128;

pub(super) fn steps(source: &str) -> Result<Vec<PathStep>, String> {
    let source = source.strip_prefix('$').unwrap_or(source);
    let mut reader = PathParser { rest: source };
    let steps = reader.steps()?;
    if !reader.rest.is_empty() {
        return Err(format!("unexpected \"{}\"", reader.rest));
    }
    Ok(steps)
}

struct PathParser<'s> {
    rest: &'s str,
}

impl<'s> PathParser<'s> {
    /// Parses as many steps as there are; the caller handles the rest.
    fn steps(&mut self) -> Result<Vec<PathStep>, String> {
        let mut steps = Vec::new();
        loop {
            if steps.len() > MAX_STEPS {
                return Err("the path has too many steps".into());
            }
            if self.take("[") {
                steps.push(self.bracket()?);
            } else if self.take(".") {
                if self.take("[") {
                    steps.push(self.bracket()?);
                } else if self.take("*") {
                    steps.push(PathStep::Each);
                } else if let Some(name) = self.name()? {
                    steps.push(PathStep::Field(name.into()));
                } else if !self.rest.is_empty() || !steps.is_empty() {
                    return Err("a field name must follow \".\"".into());
                }
            } else {
                return Ok(steps);
            }
        }
    }

    /// A name ends at a step; a backslash takes the next character as it is.
    fn name(&mut self) -> Result<Option<String>, String> {
        if self.rest.starts_with('.') {
            return Err("recursive descent \"..\" is not supported".into());
        }
        let mut name = String::new();
        let mut chars = self.rest.char_indices();
        let mut end = self.rest.len();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => match chars.next() {
                    Some((_, escaped)) => name.push(escaped),
                    None => return Err("a path may not end in a backslash".into()),
                },
                '.' | '[' | ']' | '=' | '!' | '<' | '>' | ')' | ' ' | '{' | '}' => {
                    end = at;
                    break;
                }
                other => name.push(other),
            }
        }
        self.rest = &self.rest[end..];
        Ok((!name.is_empty()).then_some(name))
    }

    fn bracket(&mut self) -> Result<PathStep, String> {
        let step = if self.take("*") {
            PathStep::Each
        } else if self.take("?(") {
            let filter = self.filter()?;
            self.expect(")")?;
            PathStep::Filter(filter)
        } else if let Some(name) = self.quoted()? {
            PathStep::Field(name.into())
        } else {
            let digits = self.until(']');
            let index = digits.parse().map_err(|_| {
                format!("\"[{digits}]\" is neither an index, a quoted name, [*] nor a filter")
            })?;
            PathStep::Index(index)
        };
        self.expect("]")?;
        Ok(step)
    }

    fn filter(&mut self) -> Result<FilterExpression, String> {
        self.skip_spaces();
        self.expect("@")?;
        let left = self.steps()?;
        self.skip_spaces();
        let test = match self.comparison() {
            None => None,
            Some(comparison) => {
                self.skip_spaces();
                let operand = self.operand()?;
                self.skip_spaces();
                Some((comparison, operand))
            }
        };
        Ok(FilterExpression { left, test })
    }

    fn comparison(&mut self) -> Option<FilterOperator> {
        for (text, comparison) in [
            ("==", FilterOperator::Equal),
            ("!=", FilterOperator::NotEqual),
            ("<=", FilterOperator::LessOrEqual),
            (">=", FilterOperator::GreaterOrEqual),
            ("<", FilterOperator::Less),
            (">", FilterOperator::Greater),
        ] {
            if self.take(text) {
                return Some(comparison);
            }
        }
        None
    }

    fn operand(&mut self) -> Result<Operand, String> {
        if self.take("@") {
            return Ok(Operand::Path(self.steps()?));
        }
        if let Some(text) = self.quoted()? {
            return Ok(Operand::Literal(text.into()));
        }
        let end = self.rest.find([')', ' ']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        match serde_json::from_str::<Value>(word) {
            Ok(literal @ (Value::Bool(_) | Value::Number(_))) => Ok(Operand::Literal(literal)),
            _ => Err(format!("\"{word}\" cannot be compared with")),
        }
    }

    fn quoted(&mut self) -> Result<Option<String>, String> {
        let Some(quote) = self.rest.chars().next().filter(|c| "'\"".contains(*c)) else {
            return Ok(None);
        };
        let mut text = String::new();
        let mut chars = self.rest[1..].char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => text.extend(chars.next().map(|(_, escaped)| escaped)),
                c if c == quote => {
                    self.rest = &self.rest[at + 2..];
                    return Ok(Some(text));
                }
                other => text.push(other),
            }
        }
        Err("a quote is not closed".into())
    }

    fn until(&mut self, end: char) -> &'s str {
        let at = self.rest.find(end).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(at);
        self.rest = rest;
        text
    }

    fn take(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, text: &str) -> Result<(), String> {
        if self.take(text) {
            return Ok(());
        }
        Err(format!("\"{text}\" expected before \"{}\"", self.rest))
    }

    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start();
    }
}
