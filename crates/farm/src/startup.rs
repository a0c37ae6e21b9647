//! The rules that a program checks when it starts, and those that it does not check and then fails by.
//!
//! The schema says which fields exist; these rules say which have to be set, and to what. A violation keeps
//! the program from starting, or lets it fail later without a message: an index without attempts loses every
//! blob. Pure: a value in, findings out.

mod blobstore;
mod expressions;
mod programs;
mod servers;
#[cfg(test)]
mod tests;

use serde_json::Value;

pub use self::servers::ListenAddress;
use crate::schema::{Finding, Program};

/// The addresses on which the servers of a program listen. Programs of one pod share its ports.
pub fn listen_addresses(configuration: &Value) -> Vec<ListenAddress> {
    servers::listen_addresses(&Node::root(configuration))
}

/// The violations of the rules by the configuration of a program.
pub fn check(program: Program, configuration: &Value) -> Vec<Finding> {
    let mut rules = Rules {
        findings: Vec::new(),
    };
    let root = Node::root(configuration);
    rules.global(program, &root.get("global"));
    rules.everywhere(&root);
    rules.ports(&root);
    match program {
        Program::Storage => rules.storage(&root),
        Program::Scheduler => rules.scheduler(&root),
        Program::Worker => rules.worker(&root),
        Program::Runner => rules.runner(&root),
        Program::Browser => rules.browser(&root),
    }
    rules.findings
}

struct Rules {
    findings: Vec<Finding>,
}

impl Rules {
    fn add(&mut self, at: &Node<'_>, problem: impl Into<String>) {
        self.findings.push(Finding::new(&*at.path, problem));
    }

    fn require(&mut self, at: &Node<'_>, fields: &[&str]) {
        for field in fields {
            let inner = at.get(field);
            if inner.is_absent() {
                self.add(&inner, "is required");
            }
        }
    }
}

/// A value of a configuration and where it is.
#[derive(Clone)]
struct Node<'a> {
    value: &'a Value,
    path: String,
}

impl<'a> Node<'a> {
    fn root(value: &'a Value) -> Self {
        Self {
            value,
            path: String::new(),
        }
    }

    /// A field, in either of the two spellings that are accepted.
    fn get(&self, field: &str) -> Self {
        let path = if self.path.is_empty() {
            field.to_owned()
        } else {
            format!("{}.{field}", self.path)
        };
        let value = self.value.get(field);
        let value = value.or_else(|| self.value.get(snake_case(field)));
        Self {
            value: value.unwrap_or(&Value::Null),
            path,
        }
    }

    fn is_absent(&self) -> bool {
        self.value.is_null()
    }

    fn is_present(&self) -> bool {
        !self.is_absent()
    }

    fn items(&self) -> Vec<Self> {
        let items = self.value.as_array().into_iter().flatten().enumerate();
        items
            .map(|(at, value)| Self {
                value,
                path: format!("{}[{at}]", self.path),
            })
            .collect()
    }

    fn entries(&self) -> Vec<(&'a str, Self)> {
        let entries = self.value.as_object().into_iter().flatten();
        entries
            .map(|(key, value)| {
                let path = format!("{}[{key:?}]", self.path);
                (key.as_str(), Self { value, path })
            })
            .collect()
    }

    /// The fields of an object, with their paths as fields.
    fn fields(&self) -> Vec<Self> {
        let fields = self.value.as_object().into_iter().flatten();
        fields.map(|(key, _)| self.get(key)).collect()
    }

    /// A number, also one that is written as a string; 0 if it is absent.
    fn number(&self) -> i64 {
        match self.value {
            Value::Number(number) => number
                .as_i64()
                .or_else(|| number.as_f64().map(|it| it as i64))
                .unwrap_or(0),
            Value::String(text) => text.parse().unwrap_or(0),
            _ => 0,
        }
    }

    fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}
