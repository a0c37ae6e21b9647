//! Type checking: refuses rules that cannot work, before there is an object.

use super::{
    eval::type_called,
    functions::signatures::{SIGNATURES, Signature},
    kind::StaticType,
    name,
    term::{Bind, CelOperator, FieldAccess, Fold, FoldKind, FunctionCall, Literal, Term},
};
use crate::schema::Schema;

/// The variables in scope with their kinds, innermost first.
#[derive(Clone, Copy)]
pub(super) struct TypeScope<'n> {
    name: &'n str,
    kind: &'n StaticType,
    outer: Option<&'n TypeScope<'n>>,
}

impl<'n> TypeScope<'n> {
    pub(super) fn new(name: &'n str, kind: &'n StaticType) -> Self {
        Self {
            name,
            kind,
            outer: None,
        }
    }

    pub(super) fn with(&'n self, name: &'n str, kind: &'n StaticType) -> Self {
        Self {
            name,
            kind,
            outer: Some(self),
        }
    }

    fn find(&self, name: &str) -> Option<&'n StaticType> {
        let mut names = self;
        loop {
            if names.name == name {
                return Some(names.kind);
            }
            names = names.outer?;
        }
    }
}

type CheckResult = Result<StaticType, String>;

/// Checks expressions on the objects of one schema.
#[derive(Clone, Copy)]
pub(super) struct Checker<'s> {
    pub(super) root: Schema<'s>,
}

impl Checker<'_> {
    pub(super) fn kind(self, term: &Term, names: &TypeScope<'_>) -> CheckResult {
        match term {
            Term::Literal(literal) => Ok(literal_kind(literal)),
            Term::Name(name) => name_kind(name, names),
            Term::Select(field) => {
                if is_type_name(field, names) {
                    return Ok(StaticType::Type);
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
                kind @ (StaticType::Int | StaticType::Double | StaticType::Dyn) => Ok(kind),
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

    fn two(
        self,
        parts: &(Term, Term),
        names: &TypeScope<'_>,
    ) -> Result<(StaticType, StaticType), String> {
        Ok((self.kind(&parts.0, names)?, self.kind(&parts.1, names)?))
    }

    fn has(self, field: &FieldAccess, names: &TypeScope<'_>) -> CheckResult {
        let of = self.kind(&field.of, names)?;
        self.field(&of, &field.name).map(|_| StaticType::Bool)
    }

    fn field(self, of: &StaticType, field: &str) -> CheckResult {
        let undefined = || format!("undefined field '{field}'");
        match of {
            StaticType::Dyn => Ok(StaticType::Dyn),
            StaticType::Object(id) => {
                let schema = self.root.sibling(*id);
                let name = name::property(field);
                let whole = *id == self.root.id() || schema.node().embedded_resource;
                if whole && name == "metadata" {
                    return Ok(StaticType::Metadata);
                }
                let property = schema.property(&name).ok_or_else(undefined)?;
                StaticType::of(property).ok_or_else(undefined)
            }
            StaticType::Metadata if matches!(field, "name" | "generateName") => {
                Ok(StaticType::Text)
            }
            StaticType::Metadata => Err(undefined()),
            StaticType::Map(_, value) => Ok((**value).clone()),
            StaticType::Optional(inner) => Ok(optional(self.field(inner, field)?)),
            other => Err(format!("type '{other}' does not support field selection")),
        }
    }

    fn list(self, elements: &[(Term, bool)], names: &TypeScope<'_>) -> CheckResult {
        let mut of: Option<StaticType> = None;
        for (term, may) in elements {
            let kind = element(self.kind(term, names)?, *may)?;
            of = Some(match of {
                Some(before) => same(before, kind)?,
                None => kind,
            });
        }
        Ok(StaticType::list(of.unwrap_or(StaticType::Dyn)))
    }

    fn map(self, entries: &[(Term, Term, bool)], names: &TypeScope<'_>) -> CheckResult {
        let mut of: Option<(StaticType, StaticType)> = None;
        for (key, value, may) in entries {
            let key = self.kind(key, names)?;
            let value = element(self.kind(value, names)?, *may)?;
            of = Some(match of {
                Some((keys, values)) => (same(keys, key)?, same(values, value)?),
                None => (key, value),
            });
        }
        let (key, value) = of.unwrap_or((StaticType::Dyn, StaticType::Dyn));
        Ok(StaticType::Map(key.into(), value.into()))
    }

    fn call(self, call: &FunctionCall, names: &TypeScope<'_>) -> CheckResult {
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
            // The one list whose elements may have different types.
            Term::List(elements) if &*call.name == "format" => {
                for (element, _) in elements {
                    self.kind(element, names)?;
                }
                Ok(StaticType::list(StaticType::Dyn))
            }
            arg => self.kind(arg, names),
        });
        let args = args.collect::<Result<Vec<_>, _>>()?;
        let mut fitting = named
            .into_iter()
            .filter(|signature| fits(signature, target.as_ref(), &args));
        let Some((.., gives)) = fitting.next() else {
            let all: Vec<&StaticType> = target.iter().chain(&args).collect();
            return Err(no_overload(&call.name, &all));
        };
        // Several overloads fit only when something is dynamic, and then so is the result.
        let kind = gives.kind(target.as_ref(), &args);
        Ok(match fitting.next() {
            Some((.., other)) if other.kind(target.as_ref(), &args) != kind => StaticType::Dyn,
            _ => kind,
        })
    }

    fn boolean(self, what: &str, term: &Term, names: &TypeScope<'_>) -> CheckResult {
        match self.kind(term, names)? {
            StaticType::Bool | StaticType::Dyn => Ok(StaticType::Bool),
            other => Err(no_overload(what, &[&other])),
        }
    }

    fn junction(self, what: &str, parts: &(Term, Term), names: &TypeScope<'_>) -> CheckResult {
        let (left, right) = self.two(parts, names)?;
        let fits = |kind: &StaticType| matches!(kind, StaticType::Bool | StaticType::Dyn);
        if fits(&left) && fits(&right) {
            return Ok(StaticType::Bool);
        }
        Err(no_overload(what, &[&left, &right]))
    }

    fn choice(self, parts: &(Term, Term, Term), names: &TypeScope<'_>) -> CheckResult {
        let condition = self.kind(&parts.0, names)?;
        let yes = self.kind(&parts.1, names)?;
        let no = self.kind(&parts.2, names)?;
        if !condition.fits(&StaticType::Bool) || !yes.fits(&no) {
            return Err(no_overload("_?_:_", &[&condition, &yes, &no]));
        }
        Ok(yes.join(no))
    }

    fn may_map(self, what: &str, bind: &Bind, names: &TypeScope<'_>) -> CheckResult {
        let inner = match self.kind(&bind.value, names)? {
            StaticType::Optional(inner) => *inner,
            StaticType::Dyn => StaticType::Dyn,
            other => return Err(no_overload(what, &[&other])),
        };
        self.kind(&bind.body, &names.with(&bind.variable, &inner))
    }

    fn fold(self, fold: &Fold, names: &TypeScope<'_>) -> CheckResult {
        let over = self.kind(&fold.over, names)?;
        let (first, second) = match &over {
            StaticType::Dyn => (StaticType::Dyn, StaticType::Dyn),
            StaticType::List(of) if fold.second.is_some() => (StaticType::Int, (**of).clone()),
            StaticType::List(of) => ((**of).clone(), StaticType::Dyn),
            StaticType::Map(key, value) => ((**key).clone(), (**value).clone()),
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
                Ok(StaticType::list(first))
            }
            FoldKind::List => Ok(StaticType::list(self.kind(&fold.body, &both)?)),
            FoldKind::Entries => match self.kind(&fold.body, &both)? {
                kind @ (StaticType::Map(..) | StaticType::Dyn) => Ok(kind),
                other => Err(no_overload("transformMapEntry", &[&other])),
            },
            FoldKind::Map => {
                let value = self.kind(&fold.body, &both)?;
                Ok(StaticType::Map(first.into(), value.into()))
            }
        }
    }
}

/// Optionals of optionals do not arise from chains: `a.?b.?c` is one optional.
fn optional(kind: StaticType) -> StaticType {
    match kind {
        StaticType::Optional(_) => kind,
        other => StaticType::optional(other),
    }
}

fn element(kind: StaticType, may: bool) -> CheckResult {
    match kind {
        kind if !may => Ok(kind),
        StaticType::Optional(inner) => Ok(*inner),
        StaticType::Dyn => Ok(StaticType::Dyn),
        other => Err(format!("expected type 'optional_type' but found '{other}'")),
    }
}

/// The joint type of the entries of a list or map literal.
fn same(before: StaticType, kind: StaticType) -> CheckResult {
    if before.fits(&kind) {
        return Ok(before.join(kind));
    }
    Err(format!("expected type '{before}' but found '{kind}'"))
}

fn literal_kind(literal: &Literal) -> StaticType {
    match literal {
        Literal::Null => StaticType::Null,
        Literal::Bool(_) => StaticType::Bool,
        Literal::Int(_) => StaticType::Int,
        Literal::Uint(_) => StaticType::Uint,
        Literal::Double(_) => StaticType::Double,
        Literal::Text(_) => StaticType::Text,
        Literal::Bytes(_) => StaticType::Bytes,
    }
}

fn name_kind(name: &str, names: &TypeScope<'_>) -> CheckResult {
    if let Some(kind) = names.find(name) {
        return Ok(kind.clone());
    }
    match type_called(name) {
        Some(_) => Ok(StaticType::Type),
        None => Err(format!(
            "undeclared reference to '{name}' (in container '')"
        )),
    }
}

/// `google.protobuf.Duration` is a name and not a chain of fields.
fn is_type_name(field: &FieldAccess, names: &TypeScope<'_>) -> bool {
    let Term::Select(up) = &field.of else {
        return false;
    };
    let Term::Name(root) = &up.of else {
        return false;
    };
    names.find(root).is_none()
        && type_called(&format!("{root}.{}.{}", up.name, field.name)).is_some()
}

fn index(of: &StaticType, key: &StaticType) -> CheckResult {
    match of {
        StaticType::Dyn => Ok(StaticType::Dyn),
        StaticType::List(item) if key.is_number() || *key == StaticType::Dyn => {
            Ok((**item).clone())
        }
        StaticType::Map(keys, value) if key.fits(keys) => Ok((**value).clone()),
        StaticType::Optional(inner) => Ok(optional(index(inner, key)?)),
        _ => Err(no_overload("_[_]", &[of, key])),
    }
}

fn fits((_, on, takes, _): &Signature, target: Option<&StaticType>, args: &[StaticType]) -> bool {
    let target_fits = match (on, target) {
        (None, None) => true,
        (Some(takes), Some(kind)) => takes.accepts(kind),
        _ => false,
    };
    let all = takes.iter().zip(args);
    target_fits && takes.len() == args.len() && all.into_iter().all(|(t, kind)| t.accepts(kind))
}

fn binary(operator: CelOperator, left: &StaticType, right: &StaticType) -> CheckResult {
    let found = match operator {
        CelOperator::Equal | CelOperator::NotEqual => left.fits(right).then_some(StaticType::Bool),
        CelOperator::In => match right {
            StaticType::List(of) => left.fits(of).then_some(StaticType::Bool),
            StaticType::Map(keys, _) => left.fits(keys).then_some(StaticType::Bool),
            StaticType::Dyn => Some(StaticType::Bool),
            _ => None,
        },
        CelOperator::Less
        | CelOperator::LessOrEqual
        | CelOperator::Greater
        | CelOperator::GreaterOrEqual => comparable(left, right).then_some(StaticType::Bool),
        _ => arithmetic(operator, left, right),
    };
    found.ok_or_else(|| no_overload(operator.symbol(), &[left, right]))
}

fn comparable(left: &StaticType, right: &StaticType) -> bool {
    let ordered = |kind: &StaticType| {
        kind.is_number()
            || matches!(
                kind,
                StaticType::Text
                    | StaticType::Bytes
                    | StaticType::Bool
                    | StaticType::Time
                    | StaticType::Span
                    | StaticType::Dyn
            )
    };
    let same = left.fits(right) || (left.is_number() && right.is_number());
    ordered(left) && ordered(right) && same
}

fn arithmetic(operator: CelOperator, left: &StaticType, right: &StaticType) -> Option<StaticType> {
    use CelOperator::{Add, Modulo, Subtract};
    match (left, right) {
        (StaticType::Double, StaticType::Double) if operator == Modulo => None,
        (a, b) if a.is_number() && a == b => Some(a.clone()),
        (StaticType::Dyn, _) | (_, StaticType::Dyn) => Some(StaticType::Dyn),
        (StaticType::Text, StaticType::Text) if operator == Add => Some(StaticType::Text),
        (StaticType::Bytes, StaticType::Bytes) if operator == Add => Some(StaticType::Bytes),
        (StaticType::List(a), StaticType::List(b)) if operator == Add && a.fits(b) => {
            Some(StaticType::list((**a).clone().join((**b).clone())))
        }
        (StaticType::Time, StaticType::Span) if matches!(operator, Add | Subtract) => {
            Some(StaticType::Time)
        }
        (StaticType::Span, StaticType::Time) if operator == Add => Some(StaticType::Time),
        (StaticType::Span, StaticType::Span) if matches!(operator, Add | Subtract) => {
            Some(StaticType::Span)
        }
        (StaticType::Time, StaticType::Time) if operator == Subtract => Some(StaticType::Span),
        _ => None,
    }
}

fn no_overload(what: &str, kinds: &[&StaticType]) -> String {
    let kinds: Vec<String> = kinds.iter().map(ToString::to_string).collect();
    format!(
        "found no matching overload for '{what}' applied to '({})'",
        kinds.join(", ")
    )
}
