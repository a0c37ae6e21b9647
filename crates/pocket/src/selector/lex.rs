//! The tokens of a label selector.

/// One token. `in` and `notin` are operators only where an operator may stand; the parser decides,
/// because a label may be called `in`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Word(&'a str),
    Symbol(&'a str),
    End,
}

impl<'a> Token<'a> {
    /// As shown in error messages; empty for the end.
    pub(super) fn text(self) -> &'a str {
        match self {
            Self::Word(text) | Self::Symbol(text) => text,
            Self::End => "",
        }
    }
}

/// Reads tokens off the front of a text, with one token of lookahead.
pub(super) struct Lexer<'a> {
    rest: &'a str,
    ahead: Option<Token<'a>>,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            rest: text,
            ahead: None,
        }
    }

    pub(super) fn peek(&mut self) -> Token<'a> {
        match self.ahead {
            Some(token) => token,
            None => *self.ahead.insert(scan(&mut self.rest)),
        }
    }

    pub(super) fn next(&mut self) -> Token<'a> {
        match self.ahead.take() {
            Some(token) => token,
            None => scan(&mut self.rest),
        }
    }
}

fn scan<'a>(rest: &mut &'a str) -> Token<'a> {
    let text = rest.trim_start_matches(blank);
    let Some(first) = text.chars().next() else {
        *rest = text;
        return Token::End;
    };
    if !symbol(first) {
        let end = text.find(|c| symbol(c) || blank(c)).unwrap_or(text.len());
        let (word, after) = text.split_at(end);
        *rest = after;
        return Token::Word(word);
    }
    let length = if text.starts_with("==") || text.starts_with("!=") {
        2
    } else {
        1
    };
    let (found, after) = text.split_at(length);
    *rest = after;
    Token::Symbol(found)
}

fn blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn symbol(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}
