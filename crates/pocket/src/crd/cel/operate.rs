//! Arithmetic, ordering and equality.

use std::cmp::Ordering;

use serde_json::Value;

use super::{
    eval::Evaluation,
    meter::{Fault, Meter},
    term::CelOperator,
    value::{List, MapValue, Val},
};

pub(super) fn binary<'a>(
    operator: CelOperator,
    left: &Val<'a>,
    right: &Val<'a>,
    meter: &Meter,
) -> Evaluation<'a> {
    match operator {
        CelOperator::Equal => equal(left, right, meter).map(Val::Bool),
        CelOperator::NotEqual => equal(left, right, meter).map(|same| Val::Bool(!same)),
        CelOperator::In => contains(right, left, meter).map(Val::Bool),
        CelOperator::Less => ordered(operator, left, right, meter, Ordering::is_lt),
        CelOperator::LessOrEqual => ordered(operator, left, right, meter, Ordering::is_le),
        CelOperator::Greater => ordered(operator, left, right, meter, Ordering::is_gt),
        CelOperator::GreaterOrEqual => ordered(operator, left, right, meter, Ordering::is_ge),
        CelOperator::Add => add(left, right, meter),
        _ => arithmetic(operator, left, right),
    }
}

pub(super) fn negate<'a>(value: &Val<'a>) -> Evaluation<'a> {
    match value {
        Val::Int(n) => n.checked_neg().map(Val::Int).ok_or_else(overflow),
        Val::Double(n) => Ok(Val::Double(-n)),
        other => Fault::error(format!("no such overload: -{}", other.type_name())),
    }
}

fn overflow() -> Fault {
    Fault::Error("integer overflow".into())
}

fn no_overload<'a>(operator: CelOperator, left: &Val<'_>, right: &Val<'_>) -> Evaluation<'a> {
    let (left, right) = (left.type_name(), right.type_name());
    Fault::error(format!(
        "no such overload: {}({left}, {right})",
        operator.symbol()
    ))
}

fn add<'a>(left: &Val<'a>, right: &Val<'a>, meter: &Meter) -> Evaluation<'a> {
    match (left, right) {
        (Val::Text(a), Val::Text(b)) => {
            meter.spend_text(a.len() + b.len())?;
            let mut text = String::with_capacity(a.len() + b.len());
            text.push_str(a);
            text.push_str(b);
            Ok(Val::text(text))
        }
        (Val::Bytes(a), Val::Bytes(b)) => {
            meter.spend_text(a.len() + b.len())?;
            Ok(Val::Bytes([&**a, &**b].concat().into()))
        }
        (Val::List(a), Val::List(b)) => {
            meter.spend(a.len() + b.len())?;
            Ok(Val::list(a.iter().chain(b.iter()).collect()))
        }
        (Val::Time(time), Val::Span(span)) | (Val::Span(span), Val::Time(time)) => {
            let sum = time.checked_add(*span);
            sum.map(Val::Time).map_err(|_| timestamp_overflow())
        }
        (Val::Span(a), Val::Span(b)) => a.checked_add(*b).map(Val::Span).ok_or_else(overflow),
        _ => arithmetic(CelOperator::Add, left, right),
    }
}

fn timestamp_overflow() -> Fault {
    Fault::Error("timestamp overflow".into())
}

fn arithmetic<'a>(operator: CelOperator, left: &Val<'a>, right: &Val<'a>) -> Evaluation<'a> {
    match (left, right) {
        (Val::Int(a), Val::Int(b)) => integer(operator, *a, *b),
        (Val::Uint(a), Val::Uint(b)) => unsigned(operator, *a, *b),
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(match operator {
            CelOperator::Add => a + b,
            CelOperator::Subtract => a - b,
            CelOperator::Multiply => a * b,
            CelOperator::Divide => a / b,
            _ => return no_overload(operator, left, right),
        })),
        (Val::Time(a), Val::Time(b)) if operator == CelOperator::Subtract => {
            Ok(Val::Span(a.duration_since(*b)))
        }
        (Val::Time(time), Val::Span(span)) if operator == CelOperator::Subtract => {
            let difference = time.checked_sub(*span);
            difference.map(Val::Time).map_err(|_| timestamp_overflow())
        }
        (Val::Span(a), Val::Span(b)) if operator == CelOperator::Subtract => {
            a.checked_sub(*b).map(Val::Span).ok_or_else(overflow)
        }
        _ => no_overload(operator, left, right),
    }
}

fn integer<'a>(operator: CelOperator, a: i64, b: i64) -> Evaluation<'a> {
    let value = match operator {
        CelOperator::Add => a.checked_add(b),
        CelOperator::Subtract => a.checked_sub(b),
        CelOperator::Multiply => a.checked_mul(b),
        CelOperator::Divide | CelOperator::Modulo if b == 0 => return by_zero(operator),
        CelOperator::Divide => a.checked_div(b),
        CelOperator::Modulo => a.checked_rem(b),
        _ => None,
    };
    value.map(Val::Int).ok_or_else(overflow)
}

fn unsigned<'a>(operator: CelOperator, a: u64, b: u64) -> Evaluation<'a> {
    let value = match operator {
        CelOperator::Add => a.checked_add(b),
        CelOperator::Subtract => a.checked_sub(b),
        CelOperator::Multiply => a.checked_mul(b),
        CelOperator::Divide | CelOperator::Modulo if b == 0 => return by_zero(operator),
        CelOperator::Divide => a.checked_div(b),
        CelOperator::Modulo => a.checked_rem(b),
        _ => None,
    };
    value.map(Val::Uint).ok_or_else(overflow)
}

fn by_zero<'a>(operator: CelOperator) -> Evaluation<'a> {
    Fault::error(if operator == CelOperator::Divide {
        "division by zero"
    } else {
        "modulus by zero"
    })
}

fn ordered<'a>(
    operator: CelOperator,
    left: &Val<'a>,
    right: &Val<'a>,
    meter: &Meter,
    holds: fn(Ordering) -> bool,
) -> Evaluation<'a> {
    if let (Val::Text(a), Val::Text(b)) = (left, right) {
        meter.spend_text(a.len().min(b.len()))?;
    }
    if let (Val::Double(a), _) | (_, Val::Double(a)) = (left, right)
        && a.is_nan()
    {
        return Ok(Val::Bool(false));
    }
    match order(left, right) {
        Some(order) => Ok(Val::Bool(holds(order))),
        None => no_overload(operator, left, right),
    }
}

/// The ordering of two values of comparable types.
pub(super) fn order(left: &Val<'_>, right: &Val<'_>) -> Option<Ordering> {
    match (left, right) {
        (Val::Text(a), Val::Text(b)) => Some((**a).cmp(&**b)),
        (Val::Bytes(a), Val::Bytes(b)) => Some(a.cmp(b)),
        (Val::Bool(a), Val::Bool(b)) => Some(a.cmp(b)),
        (Val::Time(a), Val::Time(b)) => Some(a.cmp(b)),
        (Val::Span(a), Val::Span(b)) => Some(a.cmp(b)),
        (Val::Quantity(a), Val::Quantity(b)) => Some(a.cmp(b)),
        (Val::Semver(a), Val::Semver(b)) => Some(a.cmp(b)),
        _ => numbers(left, right),
    }
}

fn numbers(left: &Val<'_>, right: &Val<'_>) -> Option<Ordering> {
    match (left, right) {
        (Val::Int(a), Val::Int(b)) => Some(a.cmp(b)),
        (Val::Uint(a), Val::Uint(b)) => Some(a.cmp(b)),
        (Val::Int(a), Val::Uint(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Val::Uint(a), Val::Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        _ => float(left)?.partial_cmp(&float(right)?),
    }
}

fn float(value: &Val<'_>) -> Option<f64> {
    match value {
        Val::Int(n) => Some(*n as f64),
        Val::Uint(n) => Some(*n as f64),
        Val::Double(n) => Some(*n),
        _ => None,
    }
}

/// Deep equality; values of different types are different.
pub(super) fn equal(left: &Val<'_>, right: &Val<'_>, meter: &Meter) -> Result<bool, Fault> {
    meter.spend(1)?;
    match (left, right) {
        (Val::Encoded(_), _) => equal(&left.clone().decoded(meter)?, right, meter),
        (_, Val::Encoded(_)) => equal(left, &right.clone().decoded(meter)?, meter),
        (Val::Bytes(a), Val::Bytes(b)) => {
            meter.spend_text(a.len().min(b.len()))?;
            Ok(a == b)
        }
        (Val::List(a), Val::List(b)) => lists_equal(a, b, meter),
        (Val::Map(a), Val::Map(b)) => maps_equal(a, b, meter),
        (Val::Text(a), Val::Text(b)) => {
            meter.spend_text(a.len().min(b.len()))?;
            Ok(**a == **b)
        }
        (Val::Optional(a), Val::Optional(b)) => match (a, b) {
            (Some(a), Some(b)) => equal(a, b, meter),
            (a, b) => Ok(a.is_none() && b.is_none()),
        },
        (Val::Null, Val::Null) => Ok(true),
        (Val::Ip(a), Val::Ip(b)) => Ok(a == b),
        (Val::Net(a), Val::Net(b)) => Ok(a == b),
        (Val::Url(a), Val::Url(b)) => Ok(a == b),
        (Val::Type(a), Val::Type(b)) => Ok(a == b),
        (a, b) => Ok(order(a, b) == Some(Ordering::Equal)),
    }
}

fn lists_equal(a: &List<'_>, b: &List<'_>, meter: &Meter) -> Result<bool, Fault> {
    if let (List::Of(a, _), List::Of(b, _)) = (a, b) {
        return all_json_equal(a, b, meter);
    }
    if a.len() != b.len() {
        return Ok(false);
    }
    for (a, b) in a.iter().zip(b.iter()) {
        if !equal(&a, &b, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn maps_equal(a: &MapValue<'_>, b: &MapValue<'_>, meter: &Meter) -> Result<bool, Fault> {
    if let (MapValue::Of(a, _), MapValue::Of(b, _)) = (a, b) {
        return fields_equal(a, b, meter);
    }
    if a.len() != b.len() {
        return Ok(false);
    }
    for key in a.keys() {
        match (a.get(&key), b.get(&key)) {
            (Some(a), Some(b)) if equal(&a, &b, meter)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// Compares two parts of objects as they are written. Lists that are sets or maps by their schema
/// are compared in order too, where the API server would ignore it.
fn json_equal(a: &Value, b: &Value, meter: &Meter) -> Result<bool, Fault> {
    meter.spend(1)?;
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => all_json_equal(a, b, meter),
        (Value::Object(a), Value::Object(b)) => fields_equal(a, b, meter),
        (Value::String(a), Value::String(b)) => {
            meter.spend_text(a.len().min(b.len()))?;
            Ok(a == b)
        }
        (Value::Number(a), Value::Number(b)) => Ok(a == b || a.as_f64() == b.as_f64()),
        _ => Ok(a == b),
    }
}

fn all_json_equal(a: &[Value], b: &[Value], meter: &Meter) -> Result<bool, Fault> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for (a, b) in a.iter().zip(b) {
        if !json_equal(a, b, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn fields_equal(
    a: &serde_json::Map<String, Value>,
    b: &serde_json::Map<String, Value>,
    meter: &Meter,
) -> Result<bool, Fault> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for (name, a) in a {
        match b.get(name) {
            Some(b) if json_equal(a, b, meter)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// `item in container`.
pub(super) fn contains(container: &Val<'_>, item: &Val<'_>, meter: &Meter) -> Result<bool, Fault> {
    match container {
        Val::List(list) => {
            for element in list.iter() {
                if equal(&element, item, meter)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Val::Map(MapValue::Of(fields, _)) => {
            meter.spend_value(item)?;
            Ok(match item {
                Val::Text(key) => fields.contains_key(&**key),
                _ => false,
            })
        }
        Val::Map(MapValue::Made(fields)) => {
            meter.spend_value(item)?;
            Ok(item.key().is_some_and(|key| fields.contains_key(&key)))
        }
        other => Fault::error(format!("no such overload: in {}", other.type_name())),
    }
}
