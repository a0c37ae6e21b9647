//! One rule of `x-kubernetes-validations`, compiled and checked against its schema.

use super::{
    check::{Checker, TypeScope},
    kind::StaticType,
    parse::parse,
    term::Program,
};
use crate::{
    crd::path::JsonPath,
    schema::{FieldPath, Schema, ValidationRule},
    status::{FieldErrorKind, Problems},
};

/// A compiled rule.
#[derive(Debug)]
pub(super) struct CompiledRule {
    pub(super) program: Program,
    pub(super) message: Option<Program>,
    /// The message when there is no message expression, or it fails.
    pub(super) text: Box<str>,
    pub(super) kind: FieldErrorKind,
    /// The suffix that `fieldPath` adds to the path of the rule.
    pub(super) suffix: Box<str>,
    pub(super) optional_old: bool,
}

/// The position of a rule in the schema.
#[derive(Clone, Copy)]
pub(super) struct RulePosition<'s> {
    pub(super) checker: Checker<'s>,
    pub(super) schema: Schema<'s>,
    /// Whether a value here can be correlated with one in the old object.
    pub(super) correlatable: bool,
}

const REASONS: &[(&str, FieldErrorKind)] = &[
    ("FieldValueDuplicate", FieldErrorKind::Duplicate),
    ("FieldValueForbidden", FieldErrorKind::Forbidden),
    ("FieldValueInvalid", FieldErrorKind::Invalid),
    ("FieldValueRequired", FieldErrorKind::Required),
];

impl RulePosition<'_> {
    /// Compiles `rule`, or reports why it is invalid.
    pub(super) fn ready(
        self,
        rule: &ValidationRule,
        at: &FieldPath<'_>,
        problems: &mut Problems,
    ) -> Option<CompiledRule> {
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
        Some(CompiledRule {
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

    fn program(
        self,
        rule: &ValidationRule,
        at: &FieldPath<'_>,
        problems: &mut Problems,
    ) -> Option<Program> {
        let path = at.field("rule").to_string();
        if rule.rule.trim().is_empty() {
            problems.required(path, "rule is not specified");
            return None;
        }
        let result = self.compile(&rule.rule, rule.optional_old_self);
        match result {
            Ok((program, StaticType::Bool | StaticType::Dyn)) => Some(program),
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

    fn message(
        self,
        rule: &ValidationRule,
        at: &FieldPath<'_>,
        problems: &mut Problems,
    ) -> Option<Program> {
        let source = rule.message_expression.as_deref()?;
        let path = at.field("messageExpression").to_string();
        match self.compile(source, rule.optional_old_self) {
            Ok((program, StaticType::Text | StaticType::Dyn)) => Some(program),
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

    fn compile(self, source: &str, optional_old: bool) -> Result<(Program, StaticType), String> {
        let program = parse(source)?;
        let this = StaticType::of(self.schema)
            .ok_or("nothing is declared about the value, so rules cannot see it")?;
        let old = if optional_old {
            StaticType::optional(this.clone())
        } else {
            this.clone()
        };
        let names = TypeScope::new("self", &this);
        let names = names.with("oldSelf", &old);
        let kind = self.checker.kind(&program.term, &names)?;
        Ok((program, kind))
    }

    fn suffix(
        self,
        rule: &ValidationRule,
        at: &FieldPath<'_>,
        problems: &mut Problems,
    ) -> Option<Box<str>> {
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
    let path = JsonPath::parse(source).ok()?;
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

fn reason(
    rule: &ValidationRule,
    at: &FieldPath<'_>,
    problems: &mut Problems,
) -> Option<FieldErrorKind> {
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

fn review_message(rule: &ValidationRule, at: &FieldPath<'_>, problems: &mut Problems) {
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
