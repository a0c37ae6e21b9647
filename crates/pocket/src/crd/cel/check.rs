//! Refusing rules that cannot work, before there is an object.
//!
//! Every field must be declared, every function known, every operator given types it has; what
//! depends on the value (`dyn`, null, int-or-string) is left to evaluation.

use super::{
    eval::type_called,
    functions::signatures::{SIGNATURES, Signature},
    kind::Kind,
    name,
    term::{Bind, Call, Field, Fold, FoldKind, Literal, Operator, Term},
};
use crate::schema::Schema;

/// A variable's kind and those around it.
#[derive(Clone, Copy)]
pub(super) struct Names<'n> {
    name: &'n str,
    kind: &'n Kind,
    outer: Option<&'n Names<'n>>,
}

impl<'n> Names<'n> {
    pub(super) fn new(name: &'n str, kind: &'n Kind) -> Self {
        Self {
            name,
            kind,
            outer: None,
        }
    }

    pub(super) fn with(&'n self, name: &'n str, kind: &'n Kind) -> Self {
        Self {
            name,
            kind,
            outer: Some(self),
        }
    }

    fn find(&self, name: &str) -> Option<&'n Kind> {
        let mut names = self;
        loop {
            if names.name == name {
                return Some(names.kind);
            }
            names = names.outer?;
        }
    }
}

type Found = Result<Kind, String>;

/// Checks expressions on the objects of one schema.
#[derive(Clone, Copy)]
pub(super) struct Checker<'s> {
    pub(super) root: Schema<'s>,
}

impl Checker<'_> {
    pub(super) fn kind(self, term: &Term, names: &Names<'_>) -> Found {
        match term {
            Term::Literal(literal) => Ok(literal_kind(literal)),
            Term::Name(name) => name_kind(name, names),
            Term::Select(field) => {
                if is_type_name(field, names) {
                    return Ok(Kind::Type);
                }
                let of = self.kind(&field.of, names)?;
                self.field(&of, &field.name)
            }
            Term::MaySelect(field) => {
                let of = self.kind(&field.of, names)?;
                Ok(optional(self.field(&of, &field.name)?))
            }
            Term::Has(field) => self.has(field, names),
            Term::Index(parts) => {
                let (of, key) = self.two(parts, names)?;
                index(&of, &key)
            }
            Term::MayIndex(parts) => {
                let (of, key) = self.two(parts, names)?;
                Ok(optional(index(&of, &key)?))
            }
            Term::List(elements) => self.list(elements, names),
            Term::Map(entries) => self.map(entries, names),
            Term::Call(call) => self.call(call, names),
            Term::Not(of) => self.boolean("!_", of, names),
            Term::Negate(of) => match self.kind(of, names)? {
                kind @ (Kind::Int | Kind::Double | Kind::Dyn) => Ok(kind),
                other => Err(no_overload("-_", &[&other])),
            },
            Term::And(parts) => self.junction("_&&_", parts, names),
            Term::Or(parts) => self.junction("_||_", parts, names),
            Term::If(parts) => self.choice(parts, names),
            Term::Binary(operator, parts) => {
                let (left, right) = self.two(parts, names)?;
                binary(*operator, &left, &right)
            }
            Term::Fold(fold) => self.fold(fold, names),
            Term::MayMap(bind) => Ok(optional(self.may_map("optMap", bind, names)?)),
            Term::MayFlatMap(bind) => self.may_map("optFlatMap", bind, names),
        }
    }

    fn two(self, parts: &(Term, Term), names: &Names<'_>) -> Result<(Kind, Kind), String> {
        Ok((self.kind(&parts.0, names)?, self.kind(&parts.1, names)?))
    }

    fn has(self, field: &Field, names: &Names<'_>) -> Found {
        let of = self.kind(&field.of, names)?;
        self.field(&of, &field.name).map(|_| Kind::Bool)
    }

    fn field(self, of: &Kind, field: &str) -> Found {
        let undefined = || format!("undefined field '{field}'");
        match of {
            Kind::Dyn => Ok(Kind::Dyn),
            Kind::Object(id) => {
                let schema = self.root.sibling(*id);
                let name = name::property(field);
                let whole = *id == self.root.id() || schema.node().embedded_resource;
                if whole && name == "metadata" {
                    return Ok(Kind::Metadata);
                }
                let property = schema.property(&name).ok_or_else(undefined)?;
                Kind::of(property).ok_or_else(undefined)
            }
            Kind::Metadata if matches!(field, "name" | "generateName") => Ok(Kind::Text),
            Kind::Metadata => Err(undefined()),
            Kind::Map(_, value) => Ok((**value).clone()),
            Kind::Optional(inner) => Ok(optional(self.field(inner, field)?)),
            other => Err(format!("type '{other}' does not support field selection")),
        }
    }

    fn list(self, elements: &[(Term, bool)], names: &Names<'_>) -> Found {
        let mut of: Option<Kind> = None;
        for (term, may) in elements {
            let kind = element(self.kind(term, names)?, *may)?;
            of = Some(match of {
                Some(before) => same(before, kind)?,
                None => kind,
            });
        }
        Ok(Kind::list(of.unwrap_or(Kind::Dyn)))
    }

    fn map(self, entries: &[(Term, Term, bool)], names: &Names<'_>) -> Found {
        let mut of: Option<(Kind, Kind)> = None;
        for (key, value, may) in entries {
            let key = self.kind(key, names)?;
            let value = element(self.kind(value, names)?, *may)?;
            of = Some(match of {
                Some((keys, values)) => (same(keys, key)?, same(values, value)?),
                None => (key, value),
            });
        }
        let (key, value) = of.unwrap_or((Kind::Dyn, Kind::Dyn));
        Ok(Kind::Map(key.into(), value.into()))
    }

    fn call(self, call: &Call, names: &Names<'_>) -> Found {
        let named: Vec<&Signature> = SIGNATURES
            .iter()
            .filter(|(name, ..)| *name == &*call.name)
            .collect();
        if named.is_empty() {
            return Err(format!(
                "undeclared reference to '{}' (in container '')",
                call.name
            ));
        }
        let target = match &call.target {
            Some(target) => Some(self.kind(target, names)?),
            None => None,
        };
        let args = call.args.iter().map(|arg| match arg {
            // The one list whose elements are meant to differ.
            Term::List(elements) if &*call.name == "format" => {
                for (element, _) in elements {
                    self.kind(element, names)?;
                }
                Ok(Kind::list(Kind::Dyn))
            }
            arg => self.kind(arg, names),
        });
        let args = args.collect::<Result<Vec<_>, _>>()?;
        let mut fitting = named
            .into_iter()
            .filter(|signature| fits(signature, target.as_ref(), &args));
        let Some((.., gives)) = fitting.next() else {
            let all: Vec<&Kind> = target.iter().chain(&args).collect();
            return Err(no_overload(&call.name, &all));
        };
        // Several overloads fit only when something is dynamic, and then so is the result.
        let kind = gives.kind(target.as_ref(), &args);
        Ok(match fitting.next() {
            Some((.., other)) if other.kind(target.as_ref(), &args) != kind => Kind::Dyn,
            _ => kind,
        })
    }

    fn boolean(self, what: &str, term: &Term, names: &Names<'_>) -> Found {
        match self.kind(term, names)? {
            Kind::Bool | Kind::Dyn => Ok(Kind::Bool),
            other => Err(no_overload(what, &[&other])),
        }
    }

    fn junction(self, what: &str, parts: &(Term, Term), names: &Names<'_>) -> Found {
        let (left, right) = self.two(parts, names)?;
        let fits = |kind: &Kind| matches!(kind, Kind::Bool | Kind::Dyn);
        if fits(&left) && fits(&right) {
            return Ok(Kind::Bool);
        }
        Err(no_overload(what, &[&left, &right]))
    }

    fn choice(self, parts: &(Term, Term, Term), names: &Names<'_>) -> Found {
        let condition = self.kind(&parts.0, names)?;
        let yes = self.kind(&parts.1, names)?;
        let no = self.kind(&parts.2, names)?;
        if !condition.fits(&Kind::Bool) || !yes.fits(&no) {
            return Err(no_overload("_?_:_", &[&condition, &yes, &no]));
        }
        Ok(yes.join(no))
    }

    fn may_map(self, what: &str, bind: &Bind, names: &Names<'_>) -> Found {
        let inner = match self.kind(&bind.value, names)? {
            Kind::Optional(inner) => *inner,
            Kind::Dyn => Kind::Dyn,
            other => return Err(no_overload(what, &[&other])),
        };
        self.kind(&bind.body, &names.with(&bind.variable, &inner))
    }

    fn fold(self, fold: &Fold, names: &Names<'_>) -> Found {
        let over = self.kind(&fold.over, names)?;
        let (first, second) = match &over {
            Kind::Dyn => (Kind::Dyn, Kind::Dyn),
            Kind::List(of) if fold.second.is_some() => (Kind::Int, (**of).clone()),
            Kind::List(of) => ((**of).clone(), Kind::Dyn),
            Kind::Map(key, value) => ((**key).clone(), (**value).clone()),
            other => {
                return Err(format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                ));
            }
        };
        let inner = names.with(&fold.variable, &first);
        let both = match &fold.second {
            Some(name) => inner.with(name, &second),
            None => inner,
        };
        if let Some(filter) = &fold.filter {
            self.boolean("filter", filter, &both)?;
        }
        match fold.kind {
            FoldKind::All => self.boolean("all", &fold.body, &both),
            FoldKind::Exists => self.boolean("exists", &fold.body, &both),
            FoldKind::ExistsOne => self.boolean("exists_one", &fold.body, &both),
            FoldKind::Filter => {
                self.boolean("filter", &fold.body, &both)?;
                Ok(Kind::list(first))
            }
            FoldKind::List => Ok(Kind::list(self.kind(&fold.body, &both)?)),
            FoldKind::Entries => match self.kind(&fold.body, &both)? {
                kind @ (Kind::Map(..) | Kind::Dyn) => Ok(kind),
                other => Err(no_overload("transformMapEntry", &[&other])),
            },
            FoldKind::Map => {
                let value = self.kind(&fold.body, &both)?;
                Ok(Kind::Map(first.into(), value.into()))
            }
        }
    }
}

/// Optionals of optionals do not arise from chains: `a.?b.?c` is one optional.
fn optional(kind: Kind) -> Kind {
    match kind {
        Kind::Optional(_) => kind,
        other => Kind::optional(other),
    }
}

fn element(kind: Kind, may: bool) -> Found {
    match kind {
        kind if !may => Ok(kind),
        Kind::Optional(inner) => Ok(*inner),
        Kind::Dyn => Ok(Kind::Dyn),
        other => Err(format!("expected type 'optional_type' but found '{other}'")),
    }
}

/// The entries of a list or map that is written out have one type.
fn same(before: Kind, kind: Kind) -> Found {
    if before.fits(&kind) {
        return Ok(before.join(kind));
    }
    Err(format!("expected type '{before}' but found '{kind}'"))
}

fn literal_kind(literal: &Literal) -> Kind {
    match literal {
        Literal::Null => Kind::Null,
        Literal::Bool(_) => Kind::Bool,
        Literal::Int(_) => Kind::Int,
        Literal::Uint(_) => Kind::Uint,
        Literal::Double(_) => Kind::Double,
        Literal::Text(_) => Kind::Text,
        Literal::Bytes(_) => Kind::Bytes,
    }
}

fn name_kind(name: &str, names: &Names<'_>) -> Found {
    if let Some(kind) = names.find(name) {
        return Ok(kind.clone());
    }
    match type_called(name) {
        Some(_) => Ok(Kind::Type),
        None => Err(format!(
            "undeclared reference to '{name}' (in container '')"
        )),
    }
}

/// `google.protobuf.Duration` is a name and not a chain of fields.
fn is_type_name(field: &Field, names: &Names<'_>) -> bool {
    let Term::Select(up) = &field.of else {
        return false;
    };
    let Term::Name(root) = &up.of else {
        return false;
    };
    names.find(root).is_none()
        && type_called(&format!("{root}.{}.{}", up.name, field.name)).is_some()
}

fn index(of: &Kind, key: &Kind) -> Found {
    match of {
        Kind::Dyn => Ok(Kind::Dyn),
        Kind::List(item) if key.is_number() || *key == Kind::Dyn => Ok((**item).clone()),
        Kind::Map(keys, value) if key.fits(keys) => Ok((**value).clone()),
        Kind::Optional(inner) => Ok(optional(index(inner, key)?)),
        _ => Err(no_overload("_[_]", &[of, key])),
    }
}

fn fits((_, on, takes, _): &Signature, target: Option<&Kind>, args: &[Kind]) -> bool {
    let target_fits = match (on, target) {
        (None, None) => true,
        (Some(takes), Some(kind)) => takes.accepts(kind),
        _ => false,
    };
    let all = takes.iter().zip(args);
    target_fits && takes.len() == args.len() && all.into_iter().all(|(t, kind)| t.accepts(kind))
}

fn binary(operator: Operator, left: &Kind, right: &Kind) -> Found {
    let found = match operator {
        Operator::Equal | Operator::NotEqual => left.fits(right).then_some(Kind::Bool),
        Operator::In => match right {
            Kind::List(of) => left.fits(of).then_some(Kind::Bool),
            Kind::Map(keys, _) => left.fits(keys).then_some(Kind::Bool),
            Kind::Dyn => Some(Kind::Bool),
            _ => None,
        },
        Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
            comparable(left, right).then_some(Kind::Bool)
        }
        _ => arithmetic(operator, left, right),
    };
    found.ok_or_else(|| no_overload(operator.symbol(), &[left, right]))
}

fn comparable(left: &Kind, right: &Kind) -> bool {
    let ordered = |kind: &Kind| {
        kind.is_number()
            || matches!(
                kind,
                Kind::Text | Kind::Bytes | Kind::Bool | Kind::Time | Kind::Span | Kind::Dyn
            )
    };
    let same = left.fits(right) || (left.is_number() && right.is_number());
    ordered(left) && ordered(right) && same
}

fn arithmetic(operator: Operator, left: &Kind, right: &Kind) -> Option<Kind> {
    use Operator::{Add, Modulo, Subtract};
    match (left, right) {
        (Kind::Double, Kind::Double) if operator == Modulo => None,
        (a, b) if a.is_number() && a == b => Some(a.clone()),
        (Kind::Dyn, _) | (_, Kind::Dyn) => Some(Kind::Dyn),
        (Kind::Text, Kind::Text) if operator == Add => Some(Kind::Text),
        (Kind::Bytes, Kind::Bytes) if operator == Add => Some(Kind::Bytes),
        (Kind::List(a), Kind::List(b)) if operator == Add && a.fits(b) => {
            Some(Kind::list((**a).clone().join((**b).clone())))
        }
        (Kind::Time, Kind::Span) if matches!(operator, Add | Subtract) => Some(Kind::Time),
        (Kind::Span, Kind::Time) if operator == Add => Some(Kind::Time),
        (Kind::Span, Kind::Span) if matches!(operator, Add | Subtract) => Some(Kind::Span),
        (Kind::Time, Kind::Time) if operator == Subtract => Some(Kind::Span),
        _ => None,
    }
}

fn no_overload(what: &str, kinds: &[&Kind]) -> String {
    let kinds: Vec<String> = kinds.iter().map(ToString::to_string).collect();
    format!(
        "found no matching overload for '{what}' applied to '({})'",
        kinds.join(", ")
    )
}
