//! Refuses expressions that are too large for the parser, before it sees them.

/// Bytes of an expression, at most.
const MAX_EXPRESSION_BYTES: usize = 10_000;
/// Links of a chain, at most.
const MAX_CHAIN_LINKS: usize = 320;

pub(super) fn check(source: &str) -> Result<(), String> {
    if source.len() > MAX_EXPRESSION_BYTES {
        return Err(format!(
            "the expression is longer than {MAX_EXPRESSION_BYTES} bytes"
        ));
    }
    let mut scan = Scan {
        rest: source,
        before: ' ',
        links: vec![0],
    };
    while let Some(c) = scan.rest.chars().next() {
        scan.step(c);
        if scan.links.iter().any(|&links| links > MAX_CHAIN_LINKS) {
            return Err("the expression is nested too deeply".into());
        }
    }
    Ok(())
}

struct Scan<'s> {
    rest: &'s str,
    /// The character before `rest`.
    before: char,
    /// The links of the chain at each level of brackets.
    links: Vec<usize>,
}

impl Scan<'_> {
    fn step(&mut self, c: char) {
        match c {
            '\'' | '"' => return self.string(c),
            '/' if self.rest.starts_with("//") => return self.skip_to('\n'),
            '`' => return self.skip_to('`'),
            c if c.is_alphabetic() || c == '_' => return self.word(),
            '(' | '[' | '{' => {
                self.link();
                if self.links.len() < MAX_CHAIN_LINKS {
                    self.links.push(0);
                } else {
                    self.link_too_many();
                }
            }
            ')' | ']' | '}' if self.links.len() > 1 => {
                self.links.pop();
            }
            ',' | ':' | '&' | '|' => self.restart(),
            '?' if !matches!(self.before, '.' | '[') => self.restart(),
            '.' | '+' | '-' | '*' | '/' | '%' | '=' | '<' | '>' => self.link(),
            _ => {}
        }
        self.advance(c.len_utf8());
    }

    fn link(&mut self) {
        if let Some(links) = self.links.last_mut() {
            *links += 1;
        }
    }

    fn link_too_many(&mut self) {
        if let Some(links) = self.links.last_mut() {
            *links = MAX_CHAIN_LINKS + 1;
        }
    }

    /// Starts a new chain: these operators do not nest to the left.
    fn restart(&mut self) {
        if let Some(links) = self.links.last_mut() {
            *links = 0;
        }
    }

    fn advance(&mut self, bytes: usize) {
        self.before = self.rest[..bytes].chars().next_back().unwrap_or(' ');
        self.rest = &self.rest[bytes..];
    }

    fn skip_to(&mut self, end: char) {
        let found = self.rest.char_indices().skip(1).find(|&(_, c)| c == end);
        self.advance(found.map_or(self.rest.len(), |(at, c)| at + c.len_utf8()));
    }

    fn word(&mut self) {
        let end = self
            .rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(self.rest.len());
        if &self.rest[..end] == "in" {
            self.link();
        }
        self.advance(end);
    }

    fn string(&mut self, quote: char) {
        let raw = matches!(self.before, 'r' | 'R');
        let triple: String = std::iter::repeat_n(quote, 3).collect();
        let quotes = if self.rest.starts_with(&triple) { 3 } else { 1 };
        let end = &triple[..quotes];
        self.advance(quotes);
        while !self.rest.is_empty() && !self.rest.starts_with(end) {
            let c = self.rest.chars().next().unwrap_or(' ');
            self.advance(c.len_utf8());
            if c == '\\' && !raw {
                let escaped = self.rest.chars().next().map_or(0, char::len_utf8);
                self.advance(escaped);
            }
        }
        self.advance(quotes.min(self.rest.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_counted_and_texts_are_not() {
        let dots = ".".repeat(500);
        for (source, fits) in [
            (format!("self.name == '{dots}'"), true),
            (format!("self.name == \"\"\"{dots}\"\"\""), true),
            (format!("self.name == r'\\' + '{dots}'"), true),
            (format!("true // {dots}"), true),
            (format!("self.`{dots}` == 1"), true),
            (vec!["self.a == 1"; 500].join(" && "), true),
            (vec!["1"; 400].join(", "), true),
            (vec!["1"; 400].join("+"), false),
            (vec!["1"; 400].join(" in "), false),
            (format!("self{}", ".a".repeat(400)), false),
            (format!("self{}", ".?a".repeat(400)), false),
            (format!("self{}", "[?0]".repeat(400)), false),
            (format!("self{}", ".f()".repeat(400)), false),
            (format!("{}1", "(".repeat(400)), false),
            ("'unclosed".to_owned(), true),
            ("x".repeat(10_001), false),
        ] {
            assert_eq!(check(&source).is_ok(), fits, "{}", &source[..9]);
        }
    }
}
