//! Static tokens: a table of tokens and their users.
//!
//! The time of a lookup does not depend on how much of a token is right: digests are compared, each
//! as a whole, and all of them.

use std::collections::HashSet;

use aws_lc_rs::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use subtle::ConstantTimeEq;

use super::User;

/// The users of static tokens. Only digests of the tokens are stored.
#[derive(Default, Clone)]
pub struct Tokens(Vec<(TokenDigest, User)>);

type TokenDigest = [u8; SHA256_OUTPUT_LEN];

/// An error in a token table, with its line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct TableError {
    /// The line, counted from one.
    pub line: usize,
    /// The problem. No part of the line is quoted: it may be a token.
    pub problem: &'static str,
}

impl Tokens {
    /// Parses a table: a line for each token with `token,user,uid` and, if there are any,
    /// `"group,group"`. Empty lines are skipped.
    pub fn parse(table: &str) -> Result<Self, TableError> {
        let mut tokens = Self::default();
        let mut seen = HashSet::new();
        let table = table.strip_prefix('\u{feff}').unwrap_or(table);
        for (index, line) in table.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            let wrong = |problem| TableError {
                line: index + 1,
                problem,
            };
            let (token, user) = row(line).map_err(wrong)?;
            if !seen.insert(digest_of(&token)) {
                return Err(wrong("the token is in the table already"));
            }
            tokens.add(&token, user);
        }
        Ok(tokens)
    }

    /// Adds a token of a user.
    pub fn add(&mut self, token: &str, user: User) {
        self.0.push((digest_of(token), user.authenticated()));
    }

    /// The user of a token.
    pub fn holder(&self, token: &str) -> Option<&User> {
        let shown = digest_of(token);
        let mut holder = None;
        for (known, user) in &self.0 {
            if bool::from(known.ct_eq(&shown)) {
                holder = Some(user);
            }
        }
        holder
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} tokens", self.len())
    }
}

fn digest_of(token: &str) -> TokenDigest {
    let mut bytes = TokenDigest::default();
    bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    bytes
}

fn row(line: &str) -> Result<(String, User), &'static str> {
    let cells = cells(line)?;
    let [token, name, uid, rest @ ..] = cells.as_slice() else {
        return Err("there are fewer than three columns: token,user,uid");
    };
    if token.is_empty() {
        return Err("the token is empty");
    }
    if name.is_empty() {
        return Err("the user is empty");
    }
    let groups = rest
        .first()
        .map(|groups| groups.split(',').map(str::to_owned).collect());
    let user = User {
        name: name.clone(),
        uid: uid.clone(),
        groups: groups.unwrap_or_default(),
        ..User::default()
    };
    Ok((token.clone(), user))
}

/// The cells of a line; in quotes, commas belong to the cell and `""` is a quote.
fn cells(line: &str) -> Result<Vec<String>, &'static str> {
    let mut cells = Vec::new();
    let mut rest = line;
    loop {
        let (cell, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_cell(quoted)?,
            None => plain_cell(rest)?,
        };
        cells.push(cell);
        match after.strip_prefix(',') {
            Some(next) => rest = next.trim_start(),
            None if after.is_empty() => return Ok(cells),
            None => return Err("there is something between a closing quote and the next comma"),
        }
    }
}

fn plain_cell(text: &str) -> Result<(String, &str), &'static str> {
    let (cell, after) = text.split_at(text.find(',').unwrap_or(text.len()));
    if cell.contains('"') {
        return Err("there is a quote inside a cell that does not begin with one");
    }
    Ok((cell.trim().to_owned(), after))
}

fn quoted_cell(text: &str) -> Result<(String, &str), &'static str> {
    let mut cell = String::new();
    let mut rest = text;
    loop {
        let (before, after) = rest.split_once('"').ok_or("a quote is not closed")?;
        cell.push_str(before);
        match after.strip_prefix('"') {
            Some(_) => cell.push('"'),
            None => return Ok((cell, after)),
        }
        rest = &after[1..];
    }
}
