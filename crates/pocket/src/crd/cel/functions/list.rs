//! Functions on lists, and on lists as sets.

use std::cmp::Ordering;

use super::{
    super::{
        operate::{self, contains, equal, order},
        term::CelOperator,
        value::List,
    },
    CallResult, Evaluation, Evaluator, Fault, Val,
};

pub(super) fn method<'a>(
    machine: &Evaluator<'_>,
    name: &str,
    list: &List<'a>,
    args: &[Val<'a>],
) -> CallResult<'a> {
    if name == "size" && args.is_empty() {
        return Some(Ok(Val::Int(list.len() as i64)));
    }
    if let Err(fault) = machine.meter.spend(list.len()) {
        return Some(Err(fault));
    }
    Some(match (name, args) {
        ("isSorted", []) => is_sorted(machine, list),
        ("sum", []) => sum(machine, list),
        ("min", []) => extreme(machine, list, Ordering::Less),
        ("max", []) => extreme(machine, list, Ordering::Greater),
        ("indexOf", [item]) => position(machine, list, item, false),
        ("lastIndexOf", [item]) => position(machine, list, item, true),
        ("join", []) => join(machine, list, ""),
        ("join", [Val::Text(between)]) => join(machine, list, between),
        _ => return None,
    })
}

fn incomparable<T>() -> Result<T, Fault> {
    Fault::error("the elements of the list cannot be compared")
}

fn is_sorted<'a>(machine: &Evaluator<'_>, list: &List<'a>) -> Evaluation<'a> {
    let mut before: Option<Val<'_>> = None;
    for item in list.iter() {
        machine.meter.spend_value(&item)?;
        if let Some(before) = &before {
            match order(before, &item) {
                Some(Ordering::Greater) => return Ok(Val::Bool(false)),
                Some(_) => {}
                None => return incomparable(),
            }
        }
        before = Some(item);
    }
    Ok(Val::Bool(true))
}

fn sum<'a>(machine: &Evaluator<'_>, list: &List<'a>) -> Evaluation<'a> {
    let mut items = list.iter();
    let Some(mut total) = items.next() else {
        return Ok(Val::Int(0));
    };
    for item in items {
        total = operate::binary(CelOperator::Add, &total, &item, machine.meter)?;
    }
    Ok(total)
}

fn extreme<'a>(machine: &Evaluator<'_>, list: &List<'a>, wanted: Ordering) -> Evaluation<'a> {
    let mut items = list.iter();
    let Some(mut best) = items.next() else {
        return Fault::error("min and max need a list with elements");
    };
    for item in items {
        machine.meter.spend_value(&item)?;
        match order(&item, &best) {
            Some(order) if order == wanted => best = item,
            Some(_) => {}
            None => return incomparable(),
        }
    }
    Ok(best)
}

fn position<'a>(
    machine: &Evaluator<'_>,
    list: &List<'a>,
    item: &Val<'a>,
    last: bool,
) -> Evaluation<'a> {
    let mut found = -1;
    for (index, element) in list.iter().enumerate() {
        if equal(&element, item, machine.meter)? {
            found = index as i64;
            if !last {
                break;
            }
        }
    }
    Ok(Val::Int(found))
}

fn join<'a>(machine: &Evaluator<'_>, list: &List<'a>, between: &str) -> Evaluation<'a> {
    let mut out = String::new();
    for (index, item) in list.iter().enumerate() {
        let Val::Text(text) = item else {
            return Fault::error("only strings can be joined");
        };
        machine.meter.spend_text(text.len() + between.len())?;
        if index > 0 {
            out.push_str(between);
        }
        out.push_str(&text);
    }
    Ok(Val::text(out))
}

pub(super) fn sets<'a>(
    machine: &Evaluator<'_>,
    name: &str,
    a: &Val<'a>,
    b: &Val<'a>,
) -> CallResult<'a> {
    let (Val::List(left), Val::List(right)) = (a, b) else {
        return None;
    };
    let covers = |outer: &Val<'a>, inner: &List<'a>| {
        for item in inner.iter() {
            if !contains(outer, &item, machine.meter)? {
                return Ok(false);
            }
        }
        Ok::<_, Fault>(true)
    };
    let meets = || {
        for item in right.iter() {
            if contains(a, &item, machine.meter)? {
                return Ok(true);
            }
        }
        Ok::<_, Fault>(false)
    };
    let answer = match name {
        "sets.contains" => covers(a, right),
        "sets.intersects" => meets(),
        _ => covers(a, right).and_then(|all| Ok(all && covers(b, left)?)),
    };
    Some(answer.map(Val::Bool))
}
