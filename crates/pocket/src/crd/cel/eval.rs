//! Evaluating terms.
//!
//! Variables are a chain on the stack. Errors are absorbed by `||`, `&&`, `all` and `exists` as
//! the language asks; running out of steps is absorbed by nothing.

use std::collections::BTreeMap;

use super::{
    accumulator::Accumulator,
    functions,
    lookup::{as_optional, lookup_field, lookup_key, may},
    meter::{Fault, Meter},
    operate,
    term::{Bind, FieldAccess, Fold, FoldKind, FunctionCall, Literal, Program, Term},
    value::{MapValue, Text, Val},
};

pub(super) type Evaluation<'a> = Result<Val<'a>, Fault>;

/// A variable and those around it.
#[derive(Clone, Copy)]
pub(super) struct Scope<'s, 'a> {
    name: &'s str,
    value: &'s Val<'a>,
    outer: Option<&'s Scope<'s, 'a>>,
}

impl<'s, 'a> Scope<'s, 'a> {
    pub(super) fn new(name: &'s str, value: &'s Val<'a>) -> Self {
        Self {
            name,
            value,
            outer: None,
        }
    }

    pub(super) fn with(&'s self, name: &'s str, value: &'s Val<'a>) -> Self {
        Self {
            name,
            value,
            outer: Some(self),
        }
    }

    fn find(&self, name: &str) -> Option<&'s Val<'a>> {
        let mut scope = self;
        loop {
            if scope.name == name {
                return Some(scope.value);
            }
            scope = scope.outer?;
        }
    }
}

/// One evaluation of a program.
pub(super) struct Evaluator<'p> {
    pub(super) program: &'p Program,
    pub(super) meter: &'p Meter,
}

impl Evaluator<'_> {
    pub(super) fn run<'a>(&self, scope: &Scope<'_, 'a>) -> Evaluation<'a> {
        self.eval(&self.program.term, scope)
    }

    fn eval<'a>(&self, term: &Term, scope: &Scope<'_, 'a>) -> Evaluation<'a> {
        self.meter.spend(1)?;
        self.step(term, scope)?.decoded(self.meter)
    }

    fn step<'a>(&self, term: &Term, scope: &Scope<'_, 'a>) -> Evaluation<'a> {
        match term {
            Term::Literal(literal) => Ok(literal_value(literal)),
            Term::Name(name) => name_value(name, scope),
            Term::Select(field) => self.select(field, scope),
            Term::MaySelect(field) => {
                let of = self.eval(&field.of, scope)?;
                Ok(may(lookup_field(&of, &field.name)?))
            }
            Term::Has(field) => {
                let of = self.eval(&field.of, scope)?;
                Ok(Val::Bool(lookup_field(&of, &field.name)?.is_some()))
            }
            Term::Index(parts) => self.index(parts, scope),
            Term::MayIndex(parts) => {
                let of = self.eval(&parts.0, scope)?;
                let key = self.eval(&parts.1, scope)?;
                self.meter.spend_value(&key)?;
                Ok(may(lookup_key(&of, &key)?))
            }
            Term::List(elements) => self.list(elements, scope),
            Term::Map(entries) => self.map(entries, scope),
            Term::Call(call) => self.call(call, scope),
            Term::Not(of) => Ok(Val::Bool(!self.truth(of, scope)?)),
            Term::Negate(of) => operate::negate(&self.eval(of, scope)?),
            Term::And(parts) => self.junction(parts, false, scope),
            Term::Or(parts) => self.junction(parts, true, scope),
            Term::If(parts) => {
                let branch = if self.truth(&parts.0, scope)? {
                    &parts.1
                } else {
                    &parts.2
                };
                self.eval(branch, scope)
            }
            Term::Binary(operator, parts) => {
                let left = self.eval(&parts.0, scope)?;
                let right = self.eval(&parts.1, scope)?;
                operate::binary(*operator, &left, &right, self.meter)
            }
            Term::Fold(fold) => self.fold(fold, scope),
            Term::MayMap(bind) => self.may_map(bind, false, scope),
            Term::MayFlatMap(bind) => self.may_map(bind, true, scope),
        }
    }

    pub(super) fn truth(&self, term: &Term, scope: &Scope<'_, '_>) -> Result<bool, Fault> {
        match self.eval(term, scope)? {
            Val::Bool(value) => Ok(value),
            other => Fault::error(format!("bool expected and {} found", other.type_name())),
        }
    }

    fn select<'a>(&self, field: &FieldAccess, scope: &Scope<'_, 'a>) -> Evaluation<'a> {
        if let Some(of) = qualified_type(field, scope) {
            return Ok(of);
        }
        let of = self.eval(&field.of, scope)?;
        let found = lookup_field(&of, &field.name)?;
        if matches!(of, Val::Optional(_)) {
            return Ok(may(found));
        }
        found.ok_or_else(|| Fault::Error(format!("no such key: {}", field.name)))
    }

    fn index<'a>(&self, parts: &(Term, Term), scope: &Scope<'_, 'a>) -> Evaluation<'a> {
        let of = self.eval(&parts.0, scope)?;
        let key = self.eval(&parts.1, scope)?;
        self.meter.spend_value(&key)?;
        let found = lookup_key(&of, &key)?;
        if matches!(of, Val::Optional(_)) {
            return Ok(may(found));
        }
        found.ok_or_else(|| match (&of, &key) {
            (Val::List(_), Val::Int(index)) => {
                Fault::Error(format!("index out of bounds: {index}"))
            }
            (_, Val::Text(key)) => Fault::Error(format!("no such key: {}", &**key)),
            _ => Fault::Error("no such key".into()),
        })
    }

    fn list<'a>(&self, elements: &[(Term, bool)], scope: &Scope<'_, 'a>) -> Evaluation<'a> {
        let mut items = Vec::with_capacity(elements.len());
        for (term, optional) in elements {
            let value = self.eval(term, scope)?;
            if *optional {
                items.extend(as_optional(&value)?.cloned());
            } else {
                items.push(value);
            }
        }
        Ok(Val::list(items))
    }

    fn map<'a>(&self, entries: &[(Term, Term, bool)], scope: &Scope<'_, 'a>) -> Evaluation<'a> {
        let mut map = BTreeMap::new();
        for (key, value, optional) in entries {
            let key = self.eval(key, scope)?;
            self.meter.spend_value(&key)?;
            let value = self.eval(value, scope)?;
            let value = if *optional {
                as_optional(&value)?.cloned()
            } else {
                Some(value)
            };
            let key = key
                .key()
                .ok_or_else(|| Fault::Error("unsupported key type".into()))?;
            if let Some(value) = value {
                map.insert(key, value);
            }
        }
        Ok(Val::Map(MapValue::Made(map.into())))
    }

    fn call<'a>(&self, call: &FunctionCall, scope: &Scope<'_, 'a>) -> Evaluation<'a> {
        let target = match &call.target {
            Some(target) => Some(self.eval(target, scope)?),
            None => None,
        };
        // An alternative is evaluated only when the optional is empty.
        if let (Some(Val::Optional(Some(value))), "or" | "orValue") = (&target, &*call.name) {
            return Ok(if &*call.name == "or" {
                Val::Optional(Some(value.clone()))
            } else {
                (**value).clone()
            });
        }
        let mut args = Vec::with_capacity(call.args.len());
        for arg in &call.args {
            args.push(self.eval(arg, scope)?);
        }
        functions::call(self, &call.name, target.as_ref(), &args)
    }

    /// `&&` when `decisive` is false, `||` when it is true: either side alone may decide, even
    /// when the other is an error.
    fn junction<'a>(
        &self,
        parts: &(Term, Term),
        decisive: bool,
        scope: &Scope<'_, 'a>,
    ) -> Evaluation<'a> {
        let left = self.truth(&parts.0, scope);
        match left {
            Ok(value) if value == decisive => return Ok(Val::Bool(decisive)),
            Err(Fault::Exhausted) => return Err(Fault::Exhausted),
            _ => {}
        }
        let right = self.truth(&parts.1, scope)?;
        if right == decisive {
            return Ok(Val::Bool(decisive));
        }
        left.map(Val::Bool)
    }

    fn may_map<'a>(&self, bind: &Bind, flat: bool, scope: &Scope<'_, 'a>) -> Evaluation<'a> {
        let value = self.eval(&bind.value, scope)?;
        let Some(value) = as_optional(&value)? else {
            return Ok(Val::Optional(None));
        };
        let made = self.eval(&bind.body, &scope.with(&bind.variable, value))?;
        Ok(if flat { made } else { made.some() })
    }

    fn fold<'a>(&self, fold: &Fold, scope: &Scope<'_, 'a>) -> Evaluation<'a> {
        let over = self.eval(&fold.over, scope)?;
        let mut state = Accumulator::new(fold.kind);
        match &over {
            Val::List(list) => {
                for (index, item) in list.iter().enumerate() {
                    let first = match &fold.second {
                        Some(_) => Val::Int(index as i64),
                        None => item.clone(),
                    };
                    if !self.visit(fold, &mut state, &first, &item, scope)? {
                        break;
                    }
                }
            }
            Val::Map(fields) => {
                self.meter.spend(fields.len())?;
                for key in fields.keys() {
                    let value = fields.get(&key).unwrap_or(Val::Null);
                    if !self.visit(fold, &mut state, &key, &value, scope)? {
                        break;
                    }
                }
            }
            other => {
                return Fault::error(format!("a {} has no elements", other.type_name()));
            }
        }
        state.finish()
    }

    /// Visits one element; returns false when the result is known.
    fn visit<'a>(
        &self,
        fold: &Fold,
        state: &mut Accumulator<'a>,
        first: &Val<'a>,
        second: &Val<'a>,
        scope: &Scope<'_, 'a>,
    ) -> Result<bool, Fault> {
        self.meter.spend(1)?;
        if matches!(fold.kind, FoldKind::Map | FoldKind::Entries) {
            self.meter.spend_value(first)?;
        }
        let inner = scope.with(&fold.variable, first);
        let both = match &fold.second {
            Some(name) => inner.with(name, second),
            None => inner,
        };
        if let Some(filter) = &fold.filter
            && !self.truth(filter, &both)?
        {
            return Ok(true);
        }
        match fold.kind {
            FoldKind::All | FoldKind::Exists => state.quantify(self.truth(&fold.body, &both)),
            FoldKind::ExistsOne => {
                state.count += usize::from(self.truth(&fold.body, &both)?);
                Ok(true)
            }
            FoldKind::Filter => {
                if self.truth(&fold.body, &both)? {
                    state.items.push(first.clone());
                }
                Ok(true)
            }
            FoldKind::List => {
                state.items.push(self.eval(&fold.body, &both)?);
                Ok(true)
            }
            FoldKind::Entries => {
                let Val::Map(entries) = self.eval(&fold.body, &both)? else {
                    return Fault::error("transformMapEntry needs a map of entries");
                };
                self.meter.spend(entries.len())?;
                state.merge(&entries, self.meter)?;
                Ok(true)
            }
            FoldKind::Map => {
                let key = first
                    .key()
                    .ok_or(Fault::Error("unsupported key type".into()))?;
                state.map.insert(key, self.eval(&fold.body, &both)?);
                Ok(true)
            }
        }
    }
}

fn literal_value<'a>(literal: &Literal) -> Val<'a> {
    match literal {
        Literal::Null => Val::Null,
        Literal::Bool(value) => Val::Bool(*value),
        Literal::Int(value) => Val::Int(*value),
        Literal::Uint(value) => Val::Uint(*value),
        Literal::Double(value) => Val::Double(*value),
        Literal::Text(text) => Val::Text(Text::Made(text.clone())),
        Literal::Bytes(bytes) => Val::Bytes(bytes.clone()),
    }
}

fn name_value<'a>(name: &str, scope: &Scope<'_, 'a>) -> Evaluation<'a> {
    if let Some(value) = scope.find(name) {
        return Ok(value.clone());
    }
    match type_called(name) {
        Some(name) => Ok(Val::Type(name)),
        None => Fault::error(format!("undeclared reference to '{name}'")),
    }
}

/// `google.protobuf.Timestamp` and `google.protobuf.Duration` are names with dots in them.
fn qualified_type<'a>(field: &FieldAccess, scope: &Scope<'_, 'a>) -> Option<Val<'a>> {
    let Term::Select(up) = &field.of else {
        return None;
    };
    let Term::Name(root) = &up.of else {
        return None;
    };
    if &**root != "google" || scope.find(root).is_some() {
        return None;
    }
    type_called(&format!("{root}.{}.{}", up.name, field.name)).map(Val::Type)
}

/// The type that is called `name`, for `type(x) == name`.
pub(super) fn type_called(name: &str) -> Option<&'static str> {
    const TYPES: &[&str] = &[
        "bool",
        "int",
        "uint",
        "double",
        "string",
        "bytes",
        "list",
        "map",
        "null_type",
        "type",
        "google.protobuf.Timestamp",
        "google.protobuf.Duration",
    ];
    TYPES.iter().find(|known| **known == name).copied()
}
