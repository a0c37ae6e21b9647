//! `"%d of %s".format([1, "x"])`.

use super::{
    super::value::{List, MapValue},
    Evaluation, Evaluator, Fault, Val,
    convert::plain,
};

pub(super) fn format<'a>(machine: &Evaluator<'_>, text: &str, values: &List<'a>) -> Evaluation<'a> {
    let mut out = String::new();
    let mut next = 0;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut directive = chars.next();
        if directive == Some('%') {
            out.push('%');
            continue;
        }
        let mut digits = String::new();
        if directive == Some('.') {
            directive = chars.next();
            while let Some(digit) = directive.filter(char::is_ascii_digit) {
                digits.push(digit);
                directive = chars.next();
            }
        }
        // Precision is capped: it is a demand for memory.
        let precision = digits.parse().unwrap_or(6_usize).min(100);
        let value = values
            .get(next)
            .ok_or_else(|| Fault::Error(format!("index {next} out of range")))?;
        next += 1;
        let before = out.len();
        write(machine, &mut out, directive, precision, &value)?;
        machine.meter.spend_text(out.len() - before)?;
    }
    Ok(Val::text(out))
}

fn write(
    machine: &Evaluator<'_>,
    out: &mut String,
    directive: Option<char>,
    precision: usize,
    value: &Val<'_>,
) -> Result<(), Fault> {
    let text = match (directive, value) {
        (Some('s'), value) => return show(machine, out, value),
        (Some('d'), Val::Int(_) | Val::Uint(_) | Val::Double(_)) => plain(value),
        (Some('f'), value) => number(value).map(|n| format!("{n:.precision$}")),
        (Some('e'), value) => number(value).map(|n| format!("{n:.precision$e}")),
        (Some('x'), Val::Int(n)) => Some(format!("{n:x}")),
        (Some('x'), Val::Text(text)) => Some(hexadecimal(text.as_bytes())),
        (Some('X'), Val::Int(n)) => Some(format!("{n:X}")),
        (Some('o'), Val::Int(n)) => Some(format!("{n:o}")),
        (Some('b'), Val::Int(n)) => Some(format!("{n:b}")),
        (Some('b'), Val::Bool(value)) => Some(u8::from(*value).to_string()),
        _ => None,
    };
    let Some(text) = text else {
        let directive = directive.map(String::from).unwrap_or_default();
        return Fault::error(format!(
            "could not format a {} with %{directive}",
            value.type_name()
        ));
    };
    out.push_str(&text);
    Ok(())
}

fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |n: u8| char::from(DIGITS[usize::from(n)]);
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

fn number(value: &Val<'_>) -> Option<f64> {
    match value {
        Val::Int(n) => Some(*n as f64),
        Val::Uint(n) => Some(*n as f64),
        Val::Double(n) => Some(*n),
        _ => None,
    }
}

fn show(machine: &Evaluator<'_>, out: &mut String, value: &Val<'_>) -> Result<(), Fault> {
    machine.meter.spend(1)?;
    match value {
        Val::List(list) => {
            out.push('[');
            for (index, item) in list.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                show(machine, out, &item)?;
            }
            out.push(']');
        }
        Val::Map(fields) => show_map(machine, out, fields)?,
        Val::Text(text) => {
            machine.meter.spend_text(text.len())?;
            out.push_str(text);
        }
        other => out.push_str(&plain(other).unwrap_or_else(|| other.type_name().into())),
    }
    Ok(())
}

fn show_map(machine: &Evaluator<'_>, out: &mut String, fields: &MapValue<'_>) -> Result<(), Fault> {
    out.push('{');
    for (index, key) in fields.keys().into_iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        show(machine, out, &key)?;
        out.push_str(": ");
        show(machine, out, &fields.get(&key).unwrap_or(Val::Null))?;
    }
    out.push('}');
    Ok(())
}
