//! JMESPath expressions: whether they compile.
//!
//! The parser follows the grammar, and builds nothing. Its depth is bounded, because the text is a user's: what is
//! nested deeper is left to the program.

mod tokens;

use self::tokens::{Token, tokens};
use super::{Node, Rules};

/// The depth of nested expressions.
const MAX_DEPTH: usize = 60;

/// Whether a field of this name is an expression.
pub(super) fn is_expression(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "");
    name.ends_with("jmespathexpression")
}

impl Rules {
    /// An expression that does not compile keeps a program from starting.
    pub(super) fn expression(&mut self, field: &Node<'_>) {
        // Another type is a finding of the schema.
        if !field.value.is_object() {
            return;
        }
        let at = field.get("expression");
        if let Err(Fault::Wrong(place)) = compile(at.text()) {
            let problem = match place {
                Some(place) => format!("is no JMESPath expression from character {place} on"),
                None => "is no complete JMESPath expression".to_owned(),
            };
            self.add(&at, problem);
        }
    }
}

/// Why an expression does not compile.
enum Fault {
    /// From the character with this number on; none at the end.
    Wrong(Option<usize>),
    /// It is nested too deeply to be known.
    TooDeep,
}

fn compile(text: &str) -> Result<(), Fault> {
    let tokens = tokens(text).map_err(|place| Fault::Wrong(Some(place)))?;
    let mut parser = Parser {
        tokens: &tokens,
        depth: 0,
    };
    parser.expression(0)?;
    if parser.tokens.is_empty() {
        Ok(())
    } else {
        parser.wrong()
    }
}

struct Parser<'a> {
    /// The rest, each with the number of its first character.
    tokens: &'a [(usize, Token)],
    depth: usize,
}

impl Parser<'_> {
    fn wrong<T>(&self) -> Result<T, Fault> {
        Err(Fault::Wrong(self.tokens.first().map(|(place, _)| *place)))
    }

    fn peek(&self, ahead: usize) -> Option<Token> {
        self.tokens.get(ahead).map(|(_, token)| *token)
    }

    fn skip(&mut self) {
        self.tokens = self.tokens.get(1..).unwrap_or_default();
    }

    fn take(&mut self, token: Token) -> Result<(), Fault> {
        if self.peek(0) != Some(token) {
            return self.wrong();
        }
        self.skip();
        Ok(())
    }

    /// How strongly the next token holds what is before it.
    fn power(&self) -> u8 {
        self.peek(0).map_or(0, Token::power)
    }

    fn expression(&mut self, power: u8) -> Result<(), Fault> {
        if self.depth >= MAX_DEPTH {
            return Err(Fault::TooDeep);
        }
        self.depth += 1;
        let mut is_name = self.first()?;
        while power < self.power() {
            self.next(is_name)?;
            is_name = false;
        }
        self.depth -= 1;
        Ok(())
    }

    /// The beginning of an expression. Whether it may be the name of a function.
    fn first(&mut self) -> Result<bool, Fault> {
        let Some(token) = self.peek(0) else {
            return self.wrong();
        };
        match token {
            Token::Name => {
                self.skip();
                return Ok(true);
            }
            Token::Quoted if self.peek(1) == Some(Token::OpenParen) => return self.wrong(),
            Token::Quoted | Token::Literal | Token::Current => self.skip(),
            Token::Star | Token::Flatten => {
                self.skip();
                self.projected(token.power())?;
            }
            Token::Filter => self.filter()?,
            Token::OpenBrace => self.hash()?,
            Token::OpenBracket => {
                self.skip();
                if !self.index()? {
                    self.list(Token::CloseBracket)?;
                }
            }
            Token::Reference => {
                self.skip();
                self.expression(0)?;
            }
            Token::Not => {
                self.skip();
                self.expression(token.power())?;
            }
            Token::OpenParen => {
                self.skip();
                self.expression(0)?;
                self.take(Token::CloseParen)?;
            }
            _ => return self.wrong(),
        }
        Ok(false)
    }

    /// What follows an expression.
    fn next(&mut self, is_name: bool) -> Result<(), Fault> {
        let Some(token) = self.peek(0) else {
            return self.wrong();
        };
        match token {
            Token::OpenParen if !is_name => self.wrong(),
            Token::Filter => self.filter(),
            Token::Flatten => {
                self.skip();
                self.projected(token.power())
            }
            _ => {
                self.skip();
                match token {
                    Token::Dot if self.peek(0) == Some(Token::Star) => {
                        self.skip();
                        self.projected(token.power())
                    }
                    Token::Dot => self.field(token.power()),
                    Token::OpenParen => self.arguments(),
                    Token::OpenBracket if self.index()? => Ok(()),
                    Token::OpenBracket => self.wrong(),
                    _ => self.expression(token.power()),
                }
            }
        }
    }

    fn arguments(&mut self) -> Result<(), Fault> {
        while self.peek(0) != Some(Token::CloseParen) {
            self.expression(0)?;
            if self.peek(0) == Some(Token::Comma) {
                self.skip();
            } else if self.peek(0) != Some(Token::CloseParen) {
                return self.wrong();
            }
        }
        self.take(Token::CloseParen)
    }

    /// What is inside brackets, if it is an index, a slice or a star.
    fn index(&mut self) -> Result<bool, Fault> {
        let star = Token::Star;
        match (self.peek(0), self.peek(1)) {
            (Some(Token::Star), Some(Token::CloseBracket)) => {
                self.skip();
                self.skip();
                self.projected(star.power())?;
            }
            (Some(Token::Number), Some(Token::CloseBracket)) => {
                self.skip();
                self.skip();
            }
            (Some(Token::Number | Token::Colon), _) => {
                while matches!(self.peek(0), Some(Token::Number | Token::Colon)) {
                    self.skip();
                }
                self.take(Token::CloseBracket)?;
                self.projected(star.power())?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn filter(&mut self) -> Result<(), Fault> {
        self.take(Token::Filter)?;
        self.expression(0)?;
        self.take(Token::CloseBracket)?;
        if self.peek(0) == Some(Token::Flatten) {
            return Ok(());
        }
        self.projected(Token::Filter.power())
    }

    /// What is applied to each item.
    fn projected(&mut self, power: u8) -> Result<(), Fault> {
        match self.peek(0) {
            Some(Token::OpenBracket | Token::Filter) => self.expression(power),
            Some(Token::Dot) => {
                self.skip();
                self.field(power)
            }
            Some(token) if token.power() >= Token::Star.power() => self.wrong(),
            _ => Ok(()),
        }
    }

    /// What may follow a dot.
    fn field(&mut self, power: u8) -> Result<(), Fault> {
        match self.peek(0) {
            Some(Token::Name | Token::Quoted | Token::Star) => self.expression(power),
            Some(Token::OpenBracket) => {
                self.skip();
                self.list(Token::CloseBracket)
            }
            Some(Token::OpenBrace) => self.hash(),
            _ => self.wrong(),
        }
    }

    fn hash(&mut self) -> Result<(), Fault> {
        self.take(Token::OpenBrace)?;
        loop {
            match self.peek(0) {
                Some(Token::Name | Token::Quoted) => self.skip(),
                _ => return self.wrong(),
            }
            self.take(Token::Colon)?;
            self.expression(0)?;
            if self.peek(0) != Some(Token::Comma) {
                return self.take(Token::CloseBrace);
            }
            self.skip();
        }
    }

    fn list(&mut self, end: Token) -> Result<(), Fault> {
        loop {
            self.expression(0)?;
            if self.peek(0) != Some(Token::Comma) {
                return self.take(end);
            }
            self.skip();
        }
    }
}
