//! Parsing label selectors of query parameters.

use super::{LabelSelector, Operator, Requirement};
use crate::{
    selector::{
        bounded, counted,
        lex::{Lexer, Token},
    },
    status::{ApiError, Result},
};

impl LabelSelector {
    /// Parses `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`; the empty text selects everything.
    pub fn parse(text: &str) -> Result<Self> {
        bounded(text)?;
        let mut lexer = Lexer::new(text);
        let mut requirements = Vec::new();
        if lexer.peek() == Token::End {
            return Ok(Self::everything());
        }
        loop {
            match lexer.peek() {
                Token::Word(_) | Token::Symbol("!") => {}
                other if requirements.is_empty() => {
                    return Err(unexpected(other, "!, identifier, or 'end of string'"));
                }
                other => return Err(unexpected(other, "identifier after ','")),
            }
            requirements.push(requirement(&mut lexer)?);
            counted(requirements.len())?;
            match lexer.next() {
                Token::End => return Ok(Self::all_of(requirements)),
                Token::Symbol(",") => {}
                other => return Err(unexpected(other, "',' or 'end of string'")),
            }
        }
    }
}

fn unexpected(found: Token<'_>, what: &str) -> ApiError {
    let found = found.text();
    ApiError::bad_request(format!("found '{found}', expected: {what}"))
}

fn expected(found: Token<'_>, what: &str) -> ApiError {
    ApiError::bad_request(format!(
        "unable to parse requirement: found '{}', expected: {what}",
        found.text()
    ))
}

fn requirement(lexer: &mut Lexer<'_>) -> Result<Requirement> {
    let absent = lexer.peek() == Token::Symbol("!");
    if absent {
        lexer.next();
    }
    let key = match lexer.next() {
        Token::Word(key) => key,
        other => return Err(expected(other, "identifier")),
    };
    if absent {
        return Requirement::new(key, Operator::DoesNotExist, &[]);
    }
    if matches!(lexer.peek(), Token::End | Token::Symbol(",")) {
        return Requirement::new(key, Operator::Exists, &[]);
    }
    let operator = match lexer.next() {
        Token::Word("in") => return Requirement::new(key, Operator::In, &values(lexer)?),
        Token::Word("notin") => return Requirement::new(key, Operator::NotIn, &values(lexer)?),
        Token::Symbol("=" | "==") => Operator::In,
        Token::Symbol("!=") => Operator::NotIn,
        Token::Symbol(">") => Operator::GreaterThan,
        Token::Symbol("<") => Operator::LessThan,
        other => return Err(expected(other, "in, notin, =, ==, !=, gt, lt")),
    };
    let value = match lexer.peek() {
        Token::End | Token::Symbol(",") => "",
        Token::Word(value) => {
            lexer.next();
            value
        }
        other @ Token::Symbol(_) => return Err(expected(other, "identifier")),
    };
    Requirement::new(key, operator, &[value])
}

/// `(a,b,,c)`: nothing between commas is the empty value.
fn values<'a>(lexer: &mut Lexer<'a>) -> Result<Vec<&'a str>> {
    match lexer.next() {
        Token::Symbol("(") => {}
        other => {
            let found = other.text();
            return Err(ApiError::bad_request(format!(
                "unable to parse requirement: found '{found}' expected: '('"
            )));
        }
    }
    let mut values = Vec::new();
    if lexer.peek() == Token::Symbol(")") {
        lexer.next();
        return Ok(vec![""]);
    }
    match lexer.peek() {
        Token::Word(_) | Token::Symbol(",") => {}
        other => return Err(expected(other, "',', ')' or identifier")),
    }
    loop {
        values.push(match lexer.peek() {
            Token::Word(value) => {
                lexer.next();
                value
            }
            _ => "",
        });
        match lexer.next() {
            Token::Symbol(",") => {}
            Token::Symbol(")") => return Ok(values),
            other => return Err(expected(other, "',' or ')'")),
        }
    }
}
