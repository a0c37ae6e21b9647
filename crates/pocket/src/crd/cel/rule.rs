//! One rule of `x-kubernetes-validations`, compiled and checked against its schema.

use super::{
    check::{Checker, Names},
    kind::Kind,
    parse::parse,
    term::Program,
};
use crate::{
    crd::path::Path,
    schema::{Place, Rule, Schema},
    status::{FieldErrorKind, Problems},
};

/// A rule that can run.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) program: Program,
    pub(super) message: Option<Program>,
    /// What is said when there is no message expression, or it fails.
    pub(super) text: Box<str>,
    pub(super) kind: FieldErrorKind,
    /// What `fieldPath` adds to the place of the rule.
    pub(super) suffix: Box<str>,
    pub(super) optional_old: bool,
}

/// Where a rule stands.
#[derive(Clone, Copy)]
pub(super) struct Site<'s> {
    pub(super) checker: Checker<'s>,
    pub(super) schema: Schema<'s>,
    /// Whether a value here can be found again in the old object.
    pub(super) correlatable: bool,
}

const REASONS: &[(&str, FieldErrorKind)] = &[
    ("FieldValueDuplicate", FieldErrorKind::Duplicate),
    ("FieldValueForbidden", FieldErrorKind::Forbidden),
    ("FieldValueInvalid", FieldErrorKind::Invalid),
    ("FieldValueRequired", FieldErrorKind::Required),
];

impl Site<'_> {
    /// Compiles `rule`, or reports why it cannot be.
    pub(super) fn ready(
        self,
        rule: &Rule,
        at: &Place<'_>,
        problems: &mut Problems,
    ) -> Option<Ready> {
        review_message(rule, at, problems);
        let program = self.program(rule, at, problems)?;
        if rule.optional_old_self && !program.uses_old {
            let path = at.field("optionalOldSelf").to_string();
            problems.invalid(path, true, "may not be set if oldSelf is not used in rule");
        }
        if program.uses_old && !self.correlatable && !rule.optional_old_self {
            let detail = "oldSelf cannot be used on the uncorrelatable portion of the schema";
            problems.invalid(at.field("rule").to_string(), rule.rule.clone(), detail);
            return None;
        }
        Some(Ready {
            message: self.message(rule, at, problems),
            kind: reason(rule, at, problems)?,
            suffix: self.suffix(rule, at, problems)?,
            text: match rule.message.as_deref().map(str::trim) {
                Some(message) if !message.is_empty() => message.into(),
                _ => format!("failed rule: {}", rule.rule.trim()).into(),
            },
            optional_old: rule.optional_old_self,
            program,
        })
    }

    fn program(self, rule: &Rule, at: &Place<'_>, problems: &mut Problems) -> Option<Program> {
        let path = at.field("rule").to_string();
        if rule.rule.trim().is_empty() {
            problems.required(path, "rule is not specified");
            return None;
        }
        let result = self.compile(&rule.rule, rule.optional_old_self);
        match result {
            Ok((program, Kind::Bool | Kind::Dyn)) => Some(program),
            Ok(_) => {
                problems.invalid(
                    path,
                    rule.rule.clone(),
                    "cel expression must evaluate to a bool",
                );
                None
            }
            Err(error) => {
                let detail = format!("compilation failed: {error}");
                problems.invalid(path, rule.rule.clone(), detail);
                None
            }
        }
    }

    fn message(self, rule: &Rule, at: &Place<'_>, problems: &mut Problems) -> Option<Program> {
        let source = rule.message_expression.as_deref()?;
        let path = at.field("messageExpression").to_string();
        match self.compile(source, rule.optional_old_self) {
            Ok((program, Kind::Text | Kind::Dyn)) => Some(program),
            Ok(_) => {
                problems.invalid(path, source, "messageExpression must evaluate to a string");
                None
            }
            Err(error) => {
                problems.invalid(path, source, format!("compilation failed: {error}"));
                None
            }
        }
    }

    fn compile(self, source: &str, optional_old: bool) -> Result<(Program, Kind), String> {
        let program = parse(source)?;
        let this = Kind::of(self.schema)
            .ok_or("nothing is declared about the value, so rules cannot see it")?;
        let old = if optional_old {
            Kind::optional(this.clone())
        } else {
            this.clone()
        };
        let names = Names::new("self", &this);
        let names = names.with("oldSelf", &old);
        let kind = self.checker.kind(&program.term, &names)?;
        Ok((program, kind))
    }

    fn suffix(self, rule: &Rule, at: &Place<'_>, problems: &mut Problems) -> Option<Box<str>> {
        let Some(source) = rule.field_path.as_deref() else {
            return Some("".into());
        };
        let suffix = resolve(self.schema, source);
        if suffix.is_none() {
            let path = at.field("fieldPath").to_string();
            problems.invalid(path, source, "fieldPath must be a valid path");
        }
        suffix
    }
}

/// The printed form of a path of declared fields and keys, relative to `schema`.
fn resolve(mut schema: Schema<'_>, source: &str) -> Option<Box<str>> {
    let path = Path::parse(source).ok()?;
    let names = path.fields().filter(|names| !names.is_empty())?;
    let mut out = String::new();
    for name in names {
        if let Some(property) = schema.property(name) {
            out.push('.');
            out.push_str(name);
            schema = property;
        } else {
            out.extend(["[", name, "]"]);
            schema = schema.additional()?;
        }
    }
    Some(out.into())
}

fn reason(rule: &Rule, at: &Place<'_>, problems: &mut Problems) -> Option<FieldErrorKind> {
    let Some(given) = rule.reason.as_deref() else {
        return Some(FieldErrorKind::Invalid);
    };
    let known = REASONS.iter().find(|(name, _)| *name == given);
    if known.is_none() {
        let names: Vec<&str> = REASONS.iter().map(|(name, _)| *name).collect();
        problems.not_supported(at.field("reason").to_string(), given, &names);
    }
    known.map(|(_, kind)| *kind)
}

fn review_message(rule: &Rule, at: &Place<'_>, problems: &mut Problems) {
    let path = || at.field("message").to_string();
    match rule.message.as_deref() {
        Some(message) if message.trim().is_empty() => {
            problems.invalid(path(), message, "message must be non-empty if specified");
        }
        Some(message) if message.contains(['\n', '\r']) => {
            problems.invalid(path(), message, "message must not contain line breaks");
        }
        None if rule.rule.trim().contains('\n') => {
            problems.required(
                path(),
                "message must be specified if rule contains line breaks",
            );
        }
        _ => {}
    }
}
