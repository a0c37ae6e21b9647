//! The tokens of a JMESPath expression.

use std::{
    iter::{Enumerate, Peekable},
    str::Chars,
};

use serde_json::Value;

/// A token, without its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    Name,
    Quoted,
    /// A JSON value or a raw string.
    Literal,
    Number,
    Current,
    Reference,
    Not,
    Comparison,
    And,
    Or,
    Pipe,
    Dot,
    Star,
    Comma,
    Colon,
    Filter,
    Flatten,
    OpenBracket,
    CloseBracket,
    OpenBrace,
    CloseBrace,
    OpenParen,
    CloseParen,
}

impl Token {
    /// How strongly it holds what is before it.
    pub(super) fn power(self) -> u8 {
        match self {
            Self::Pipe => 1,
            Self::Or => 2,
            Self::And => 3,
            Self::Comparison => 5,
            Self::Flatten => 9,
            Self::Star => 20,
            Self::Filter => 21,
            Self::Dot => 40,
            Self::Not => 45,
            Self::OpenBrace => 50,
            Self::OpenBracket => 55,
            Self::OpenParen => 60,
            _ => 0,
        }
    }
}

/// The characters that are not read yet, each with the number of those before it.
type Rest<'a> = Peekable<Enumerate<Chars<'a>>>;

/// The tokens, each with the number of its first character, or that of a character that begins none.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token)>, usize> {
    let mut rest = text.chars().enumerate().peekable();
    let mut tokens = Vec::new();
    while let Some((before, letter)) = rest.next() {
        if !" \t\r\n".contains(letter) {
            let token = token(letter, &mut rest).ok_or(before + 1)?;
            tokens.push((before + 1, token));
        }
    }
    Ok(tokens)
}

fn next_if(rest: &mut Rest<'_>, wanted: impl Fn(char) -> bool) -> bool {
    rest.next_if(|(_, letter)| wanted(*letter)).is_some()
}

fn token(letter: char, rest: &mut Rest<'_>) -> Option<Token> {
    let mut followed = |by: char| next_if(rest, |it| it == by);
    Some(match letter {
        '.' => Token::Dot,
        '*' => Token::Star,
        ',' => Token::Comma,
        ':' => Token::Colon,
        '@' => Token::Current,
        '{' => Token::OpenBrace,
        '}' => Token::CloseBrace,
        '(' => Token::OpenParen,
        ')' => Token::CloseParen,
        ']' => Token::CloseBracket,
        '[' if followed('?') => Token::Filter,
        '[' if followed(']') => Token::Flatten,
        '[' => Token::OpenBracket,
        '|' if followed('|') => Token::Or,
        '|' => Token::Pipe,
        '&' if followed('&') => Token::And,
        '&' => Token::Reference,
        '!' | '=' if followed('=') => Token::Comparison,
        '!' => Token::Not,
        '<' | '>' => {
            followed('=');
            Token::Comparison
        }
        '\'' => quoted('\'', rest).map(|_| Token::Literal)?,
        '`' => {
            let json = quoted('`', rest)?.replace("\\`", "`");
            serde_json::from_str::<Value>(&json).ok()?;
            Token::Literal
        }
        '"' => {
            let json = format!("\"{}\"", quoted('"', rest)?);
            serde_json::from_str::<Value>(&json).ok()?;
            Token::Quoted
        }
        '-' => {
            if !next_if(rest, |it| it.is_ascii_digit()) {
                return None;
            }
            digits(rest)
        }
        '0'..='9' => digits(rest),
        'a'..='z' | 'A'..='Z' | '_' => {
            while next_if(rest, |it| it.is_ascii_alphanumeric() || it == '_') {}
            Token::Name
        }
        _ => return None,
    })
}

fn digits(rest: &mut Rest<'_>) -> Token {
    while next_if(rest, |it| it.is_ascii_digit()) {}
    Token::Number
}

/// The text until the delimiter, in which a backslash keeps the next character from ending it.
fn quoted(delimiter: char, rest: &mut Rest<'_>) -> Option<String> {
    let mut text = String::new();
    loop {
        match rest.next()?.1 {
            letter if letter == delimiter => return Some(text),
            '\\' => {
                text.push('\\');
                text.push(rest.next()?.1);
            }
            letter => text.push(letter),
        }
    }
}
