//! The terms of an expression, checked and evaluated: macros are terms, not expanded loops.

use std::{collections::HashMap, sync::Arc};

use crate::crd::pattern::WeighedPattern;

/// A parsed expression and what was prepared for evaluating it.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) term: Term,
    /// Regular expression literals, compiled once.
    pub(super) patterns: HashMap<Box<str>, WeighedPattern>,
    /// Whether the expression uses `oldSelf`.
    pub(super) uses_old: bool,
}

#[derive(Debug)]
pub(super) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CelOperator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
}

impl CelOperator {
    /// As error messages name it.
    pub(super) fn symbol(self) -> &'static str {
        match self {
            Self::Add => "_+_",
            Self::Subtract => "_-_",
            Self::Multiply => "_*_",
            Self::Divide => "_/_",
            Self::Modulo => "_%_",
            Self::Equal => "_==_",
            Self::NotEqual => "_!=_",
            Self::Less => "_<_",
            Self::LessOrEqual => "_<=_",
            Self::Greater => "_>_",
            Self::GreaterOrEqual => "_>=_",
            Self::In => "@in",
        }
    }
}

/// The result a comprehension makes of its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FoldKind {
    All,
    Exists,
    ExistsOne,
    Filter,
    /// `map` and `transformList`.
    List,
    /// `transformMap`.
    Map,
    /// `transformMapEntry`.
    Entries,
}

#[derive(Debug)]
pub(super) struct Fold {
    pub(super) kind: FoldKind,
    pub(super) over: Term,
    pub(super) variable: Box<str>,
    /// The second variable of the two-variable forms; the first is then the index or key.
    pub(super) second: Option<Box<str>>,
    pub(super) filter: Option<Term>,
    pub(super) body: Term,
}

#[derive(Debug)]
pub(super) struct FunctionCall {
    /// Includes the namespace: `optional.of`.
    pub(super) name: Box<str>,
    pub(super) target: Option<Term>,
    pub(super) args: Vec<Term>,
}

#[derive(Debug)]
pub(super) struct FieldAccess {
    pub(super) of: Term,
    pub(super) name: Box<str>,
}

/// `value.optMap(variable, body)`: the body gets the content of the optional.
#[derive(Debug)]
pub(super) struct Bind {
    pub(super) variable: Box<str>,
    pub(super) value: Term,
    pub(super) body: Term,
}

#[derive(Debug)]
pub(super) enum Term {
    Literal(Literal),
    Name(Box<str>),
    Select(Box<FieldAccess>),
    /// `a.?b`
    MaySelect(Box<FieldAccess>),
    /// `has(a.b)`
    Has(Box<FieldAccess>),
    Index(Box<(Term, Term)>),
    /// `a[?b]`
    MayIndex(Box<(Term, Term)>),
    /// Elements, each with whether it is an optional to be left out when empty.
    List(Vec<(Term, bool)>),
    Map(Vec<(Term, Term, bool)>),
    Call(Box<FunctionCall>),
    Not(Box<Term>),
    Negate(Box<Term>),
    And(Box<(Term, Term)>),
    Or(Box<(Term, Term)>),
    If(Box<(Term, Term, Term)>),
    Binary(CelOperator, Box<(Term, Term)>),
    Fold(Box<Fold>),
    /// `a.optMap(x, body)`
    MayMap(Box<Bind>),
    /// `a.optFlatMap(x, body)`
    MayFlatMap(Box<Bind>),
}
