//! Licence expressions: whether one can be satisfied with the licences we accept.
//!
//! Reads SPDX expressions and the older habit of writing `/` for `OR`.

/// Whether `expression` can be satisfied by `accepted` licences alone. A text that is no
/// expression is not satisfied.
pub(crate) fn satisfied(expression: &str, accepted: &dyn Fn(&str) -> bool) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let mut parser = Parser {
        words: spaced.split_whitespace().peekable(),
        accepted,
    };
    let result = parser.either();
    result.is_some_and(|holds| holds && parser.words.next().is_none())
}

struct Parser<'a> {
    words: std::iter::Peekable<std::str::SplitWhitespace<'a>>,
    accepted: &'a dyn Fn(&str) -> bool,
}

impl Parser<'_> {
    fn either(&mut self) -> Option<bool> {
        let mut holds = self.both()?;
        while self.words.next_if_eq(&"OR").is_some() {
            holds |= self.both()?;
        }
        Some(holds)
    }

    fn both(&mut self) -> Option<bool> {
        let mut holds = self.one()?;
        while self.words.next_if_eq(&"AND").is_some() {
            holds &= self.one()?;
        }
        Some(holds)
    }

    fn one(&mut self) -> Option<bool> {
        match self.words.next()? {
            "(" => {
                let holds = self.either()?;
                self.words.next_if_eq(&")")?;
                Some(holds)
            }
            ")" | "OR" | "AND" | "WITH" => None,
            licence if self.words.next_if_eq(&"WITH").is_some() => {
                let exception = self.words.next()?;
                Some((self.accepted)(&format!("{licence} WITH {exception}")))
            }
            licence => Some((self.accepted)(licence)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_judged_by_their_parts() {
        let accepted = |licence: &str| ["MIT", "ISC", "Apache-2.0 WITH X"].contains(&licence);
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0/MIT", true),
            ("GPL-3.0 AND MIT", false),
            ("MIT AND (GPL-3.0 OR ISC)", true),
            ("GPL-3.0 OR MIT AND ISC", true),
            ("Apache-2.0 WITH X", true),
            ("Apache-2.0 WITH Y", false),
            ("", false),
            ("MIT OR", false),
            ("(MIT", false),
            ("MIT ISC", false),
        ] {
            assert_eq!(satisfied(expression, &accepted), expected, "{expression}");
        }
    }
}
