//! Parsing text to terms.

use std::collections::HashMap;

use cel::{
    Env,
    common::ast::{CallExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, ListExpr, LiteralValue},
};

use super::{
    bounds,
    functions::signatures::SIGNATURES,
    term::{Bind, CelOperator, FieldAccess, Fold, FoldKind, FunctionCall, Literal, Program, Term},
};
use crate::crd::{
    pattern::{WeighedPattern, weighed},
    validate::{date_time, go_duration},
};

/// Weight of a pattern, at most.
const MAX_PATTERN_WEIGHT: usize = 64;
/// Depth of an expression, at most: every walk over terms recurses.
const MAX_EXPRESSION_DEPTH: usize = 160;

pub(super) fn parse(source: &str) -> Result<Program, String> {
    bounds::check(source)?;
    let expression = Env::default()
        .with_optional_support(true)
        .parser()
        .enable_optional_syntax(true)
        .enable_ident_escape_syntax(true)
        .parse(source)
        .map_err(|errors| errors.to_string())?;
    let mut reader = ExpressionParser {
        patterns: HashMap::new(),
        uses_old: false,
        depth: 0,
    };
    let term = reader.term(expression)?;
    Ok(Program {
        term,
        patterns: reader.patterns,
        uses_old: reader.uses_old,
    })
}

struct ExpressionParser {
    patterns: HashMap<Box<str>, WeighedPattern>,
    uses_old: bool,
    depth: usize,
}

type ParseResult<T> = Result<T, String>;

impl ExpressionParser {
    fn term(&mut self, expression: IdedExpr) -> ParseResult<Term> {
        if self.depth >= MAX_EXPRESSION_DEPTH {
            return Err("the expression is nested too deeply".into());
        }
        self.depth += 1;
        let term = match expression.expr {
            Expr::Literal(literal) => Ok(Term::Literal(read_literal(literal))),
            Expr::Ident(name) => {
                self.uses_old |= name == "oldSelf";
                Ok(Term::Name(name.into()))
            }
            Expr::Select(select) => self
                .field(*select.operand, select.field)
                .map(|field| Term::Select(field.into())),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map.entries),
            Expr::Call(call) => self.call(call),
            Expr::Struct(message) => Err(format!("undeclared type '{}'", message.type_name)),
            Expr::Comprehension(_) | Expr::Unspecified => {
                Err("the expression cannot be read".into())
            }
        };
        self.depth -= 1;
        term
    }

    fn field(&mut self, of: IdedExpr, name: String) -> ParseResult<FieldAccess> {
        Ok(FieldAccess {
            of: self.term(of)?,
            name: name.into(),
        })
    }

    fn list(&mut self, list: ListExpr) -> ParseResult<Term> {
        let optional = list.optional_indices;
        let elements = list.elements.into_iter().enumerate();
        let terms = elements.map(|(i, e)| Ok((self.term(e)?, optional.contains(&i))));
        Ok(Term::List(terms.collect::<ParseResult<_>>()?))
    }

    fn map(&mut self, entries: Vec<IdedEntryExpr>) -> ParseResult<Term> {
        let mut terms = Vec::with_capacity(entries.len());
        for entry in entries {
            let EntryExpr::MapEntry(entry) = entry.expr else {
                return Err("messages cannot be made in rules".into());
            };
            terms.push((
                self.term(entry.key)?,
                self.term(entry.value)?,
                entry.optional,
            ));
        }
        Ok(Term::Map(terms))
    }

    fn call(&mut self, call: CallExpr) -> ParseResult<Term> {
        let CallExpr {
            func_name: name,
            target,
            args,
        } = call;
        match target {
            None => self.global(name, args),
            Some(target) => self.method(name, *target, args),
        }
    }

    fn global(&mut self, name: String, args: Vec<IdedExpr>) -> ParseResult<Term> {
        if let Some(operator) = binary(&name) {
            return Ok(Term::Binary(operator, Box::new(self.two(args)?)));
        }
        match name.as_str() {
            "_&&_" => Ok(Term::And(Box::new(self.two(args)?))),
            "_||_" => Ok(Term::Or(Box::new(self.two(args)?))),
            "_[_]" => Ok(Term::Index(Box::new(self.two(args)?))),
            "_[?_]" => Ok(Term::MayIndex(Box::new(self.two(args)?))),
            "_?._" => self.may_select(args),
            "!_" => Ok(Term::Not(Box::new(self.one(args)?))),
            "-_" => Ok(Term::Negate(Box::new(self.one(args)?))),
            "_?_:_" => {
                let [condition, yes, no] = exactly(args)?;
                let parts = (self.term(condition)?, self.term(yes)?, self.term(no)?);
                Ok(Term::If(Box::new(parts)))
            }
            "has" => self.has(args),
            _ => self.plain(name.into(), None, args),
        }
    }

    fn may_select(&mut self, args: Vec<IdedExpr>) -> ParseResult<Term> {
        let [of, name] = exactly(args)?;
        let Expr::Literal(LiteralValue::String(name)) = name.expr else {
            return Err("a field name must follow '.?'".into());
        };
        let field = self.field(of, name.inner().to_owned())?;
        Ok(Term::MaySelect(field.into()))
    }

    fn has(&mut self, args: Vec<IdedExpr>) -> ParseResult<Term> {
        let [argument] = exactly(args)?;
        let Expr::Select(select) = argument.expr else {
            return Err("invalid argument to has() macro".into());
        };
        let field = self.field(*select.operand, select.field)?;
        Ok(Term::Has(field.into()))
    }

    fn method(&mut self, name: String, target: IdedExpr, args: Vec<IdedExpr>) -> ParseResult<Term> {
        // Treated as a namespace only where that makes the name of a function; else it may be a
        // variable.
        if let Expr::Ident(space) = &target.expr {
            let whole = format!("{space}.{name}");
            if SIGNATURES.iter().any(|(known, ..)| *known == whole) {
                return self.plain(whole.into(), None, args);
            }
        }
        match (name.as_str(), args.len()) {
            ("all", 2 | 3) => self.fold(FoldKind::All, target, args, false),
            ("exists", 2 | 3) => self.fold(FoldKind::Exists, target, args, false),
            ("exists_one" | "existsOne", 2 | 3) => {
                self.fold(FoldKind::ExistsOne, target, args, false)
            }
            ("filter", 2) => self.fold(FoldKind::Filter, target, args, false),
            ("map", 2 | 3) => self.one_variable_map(target, args),
            ("transformList", 3 | 4) => self.fold(FoldKind::List, target, args, true),
            ("transformMap", 3 | 4) => self.fold(FoldKind::Map, target, args, true),
            ("transformMapEntry", 3 | 4) => self.fold(FoldKind::Entries, target, args, true),
            ("optMap", 2) => Ok(Term::MayMap(self.may_bind(target, args)?)),
            ("optFlatMap", 2) => Ok(Term::MayFlatMap(self.may_bind(target, args)?)),
            _ => self.plain(name.into(), Some(target), args),
        }
    }

    /// `all(x, p)`, `all(i, x, p)`, `transformList(i, x, [p,] e)`.
    fn fold(
        &mut self,
        kind: FoldKind,
        over: IdedExpr,
        mut args: Vec<IdedExpr>,
        transforms: bool,
    ) -> ParseResult<Term> {
        let body = args.pop().ok_or("a body is missing")?;
        let filter = if transforms && args.len() == 3 {
            args.pop()
        } else {
            None
        };
        let mut names = args.into_iter().map(variable);
        let first = names.next().ok_or("a variable is missing")??;
        let second = names.next().transpose()?;
        self.make_fold(kind, over, (first, second), filter, body)
    }

    fn one_variable_map(&mut self, over: IdedExpr, mut args: Vec<IdedExpr>) -> ParseResult<Term> {
        let body = args.pop().ok_or("a body is missing")?;
        let filter = if args.len() == 2 { args.pop() } else { None };
        let name = args.pop().ok_or("a variable is missing")?;
        let names = (variable(name)?, None);
        self.make_fold(FoldKind::List, over, names, filter, body)
    }

    fn make_fold(
        &mut self,
        kind: FoldKind,
        over: IdedExpr,
        (variable, second): (Box<str>, Option<Box<str>>),
        filter: Option<IdedExpr>,
        body: IdedExpr,
    ) -> ParseResult<Term> {
        Ok(Term::Fold(Box::new(Fold {
            kind,
            over: self.term(over)?,
            variable,
            second,
            filter: filter.map(|filter| self.term(filter)).transpose()?,
            body: self.term(body)?,
        })))
    }

    fn may_bind(&mut self, value: IdedExpr, args: Vec<IdedExpr>) -> ParseResult<Box<Bind>> {
        let [name, body] = exactly(args)?;
        Ok(Box::new(Bind {
            variable: variable(name)?,
            value: self.term(value)?,
            body: self.term(body)?,
        }))
    }

    fn plain(
        &mut self,
        name: Box<str>,
        target: Option<IdedExpr>,
        args: Vec<IdedExpr>,
    ) -> ParseResult<Term> {
        let target = target.map(|target| self.term(target)).transpose()?;
        let args = args.into_iter().map(|arg| self.term(arg));
        let args = args.collect::<ParseResult<Vec<_>>>()?;
        match &*name {
            "matches" | "find" | "findAll" => self.remember_pattern(target.is_some(), &args)?,
            "duration" | "timestamp" => readable(&name, &args)?,
            _ => {}
        }
        Ok(Term::Call(Box::new(FunctionCall { name, target, args })))
    }

    fn remember_pattern(&mut self, method: bool, args: &[Term]) -> ParseResult<()> {
        let source = args.get(usize::from(!method));
        if let Some(Term::Literal(Literal::Text(source))) = source {
            let regex = weighed(source, MAX_PATTERN_WEIGHT)
                .map_err(|error| format!("invalid matches argument: {error}"))?;
            self.patterns.insert((&**source).into(), regex);
        }
        Ok(())
    }

    fn one(&mut self, args: Vec<IdedExpr>) -> ParseResult<Term> {
        let [only] = exactly(args)?;
        self.term(only)
    }

    fn two(&mut self, args: Vec<IdedExpr>) -> ParseResult<(Term, Term)> {
        let [left, right] = exactly(args)?;
        Ok((self.term(left)?, self.term(right)?))
    }
}

fn exactly<const N: usize>(args: Vec<IdedExpr>) -> ParseResult<[IdedExpr; N]> {
    <[IdedExpr; N]>::try_from(args)
        .map_err(|args| format!("{N} arguments expected and {} given", args.len()))
}

fn variable(expression: IdedExpr) -> ParseResult<Box<str>> {
    match expression.expr {
        Expr::Ident(name) => Ok(name.into()),
        _ => Err("argument must be a simple name".into()),
    }
}

/// Refuses timestamp and duration literals that cannot be parsed.
fn readable(name: &str, args: &[Term]) -> ParseResult<()> {
    let [Term::Literal(Literal::Text(text))] = args else {
        return Ok(());
    };
    let reads = match name {
        "duration" => go_duration(text).is_some(),
        _ => date_time(text).is_some(),
    };
    if reads {
        return Ok(());
    }
    Err(format!("invalid {name} argument: \"{text}\""))
}

fn read_literal(literal: LiteralValue) -> Literal {
    match literal {
        LiteralValue::Null => Literal::Null,
        LiteralValue::Boolean(value) => Literal::Bool(value.into_inner()),
        LiteralValue::Int(value) => Literal::Int(value.into_inner()),
        LiteralValue::UInt(value) => Literal::Uint(value.into_inner()),
        LiteralValue::Double(value) => Literal::Double(value.into_inner()),
        LiteralValue::String(value) => Literal::Text(value.inner().into()),
        LiteralValue::Bytes(value) => Literal::Bytes(value.inner().into()),
    }
}

fn binary(name: &str) -> Option<CelOperator> {
    Some(match name {
        "_+_" => CelOperator::Add,
        "_-_" => CelOperator::Subtract,
        "_*_" => CelOperator::Multiply,
        "_/_" => CelOperator::Divide,
        "_%_" => CelOperator::Modulo,
        "_==_" => CelOperator::Equal,
        "_!=_" => CelOperator::NotEqual,
        "_<_" => CelOperator::Less,
        "_<=_" => CelOperator::LessOrEqual,
        "_>_" => CelOperator::Greater,
        "_>=_" => CelOperator::GreaterOrEqual,
        "@in" => CelOperator::In,
        _ => return None,
    })
}
