//! The rules of `x-kubernetes-validations`.
//!
//! Text is parsed with the grammar of the `cel` crate; the terms are checked and evaluated here,
//! because no evaluation may run without end and the crate's has no bound. Each evaluation spends
//! steps: at most a million for a rule on a value, ten million for all rules on an object.
//!
//! Differences from the API server, all on the lenient side: the cost of a rule is not estimated
//! when the definition is created, only bounded when it runs; lists that are sets or maps by
//! their schema are compared and joined as plain lists; the `image` library does not
//! exist; times know no named zones.

mod accumulator;
mod bounds;
mod check;
mod condition;
mod eval;
mod functions;
mod kind;
mod lookup;
mod meter;
mod misfit;
mod name;
mod net;
mod operate;
mod parse;
mod quantity;
mod rule;
mod semver;
mod term;
#[cfg(test)]
mod tests;
mod url;
mod value;

use std::collections::{HashMap, HashSet};

use serde_json::Value;

pub use condition::{Condition, ConditionInput};

use self::{
    check::Checker,
    eval::{Evaluator, Scope},
    meter::{Fault, MAX_STEPS_PER_OBJECT, MAX_STEPS_PER_RULE, Meter},
    misfit::{declared, misfit},
    rule::{CompiledRule, RulePosition},
    value::Val,
};
use super::validate::OldItems;
use crate::{
    schema::{FieldPath, ListType, NodeId, Schema},
    status::{FieldError, FieldErrorKind, Problems},
};

/// The compiled rules of one schema.
#[derive(Debug, Default)]
pub struct CompiledRules {
    by_node: HashMap<NodeId, Vec<CompiledRule>>,
    /// Nodes with a rule at or below them; the walk visits no others.
    reached: HashSet<NodeId>,
}

impl CompiledRules {
    /// Compiles every rule below `root`. An invalid rule is left out and reported, at paths that
    /// begin with `at`.
    pub fn compile(root: Schema<'_>, at: &str, problems: &mut Problems) -> Self {
        let mut rules = Self::default();
        let site = RulePosition {
            checker: Checker { root },
            schema: root,
            correlatable: true,
        };
        rules.gather(site, &FieldPath::At(at), problems);
        rules
    }

    pub fn is_empty(&self) -> bool {
        self.by_node.is_empty()
    }

    fn gather(
        &mut self,
        site: RulePosition<'_>,
        at: &FieldPath<'_>,
        problems: &mut Problems,
    ) -> bool {
        let schema = site.schema;
        let node = schema.node();
        let mut found = self.gather_here(site, at, problems);
        let whole = schema.id() == site.checker.root.id() || node.embedded_resource;
        let properties = at.field("properties");
        for (name, &id) in &node.properties {
            if whole && matches!(&**name, "metadata" | "apiVersion" | "kind") {
                continue;
            }
            let below = RulePosition {
                schema: schema.sibling(id),
                ..site
            };
            found |= self.gather(below, &properties.key(name), problems);
        }
        if let Some(additional) = schema.additional() {
            let below = RulePosition {
                schema: additional,
                ..site
            };
            found |= self.gather(below, &at.field("additionalProperties"), problems);
        }
        if let Some(items) = schema.items() {
            let below = RulePosition {
                schema: items,
                correlatable: site.correlatable && matches!(node.list_type, ListType::Map(_)),
                ..site
            };
            found |= self.gather(below, &at.field("items"), problems);
        }
        if found {
            self.reached.insert(schema.id());
        }
        found
    }

    fn gather_here(
        &mut self,
        site: RulePosition<'_>,
        at: &FieldPath<'_>,
        problems: &mut Problems,
    ) -> bool {
        let Some(limits) = &site.schema.node().limits else {
            return false;
        };
        let list = at.field("x-kubernetes-validations");
        let ready: Vec<CompiledRule> = limits
            .rules
            .iter()
            .enumerate()
            .filter_map(|(index, rule)| site.ready(rule, &list.index(index), problems))
            .collect();
        let found = !ready.is_empty();
        if found {
            self.by_node.insert(site.schema.id(), ready);
        }
        found
    }

    /// Runs the rules on an object that is valid by its schema; `old` is the stored object on
    /// update. A rule that fails on an unchanged value is tolerated, unless it uses `oldSelf`.
    pub fn check(
        &self,
        root: Schema<'_>,
        new: &Value,
        old: Option<&Value>,
        problems: &mut Problems,
    ) {
        self.check_within(MAX_STEPS_PER_OBJECT, root, new, old, problems);
    }

    fn check_within(
        &self,
        steps: u64,
        root: Schema<'_>,
        new: &Value,
        old: Option<&Value>,
        problems: &mut Problems,
    ) {
        let mut walk = Walk {
            rules: self,
            left: steps,
            problems,
        };
        // The early stop has already been reported.
        let _stopped = walk.visit(root, new, old, &FieldPath::Root);
    }
}

struct Walk<'w> {
    rules: &'w CompiledRules,
    left: u64,
    problems: &'w mut Problems,
}

/// The step budget of the object is exhausted.
struct StepsExhausted;

impl Walk<'_> {
    fn visit(
        &mut self,
        schema: Schema<'_>,
        new: &Value,
        old: Option<&Value>,
        at: &FieldPath<'_>,
    ) -> Result<(), StepsExhausted> {
        if new.is_null() || !self.rules.reached.contains(&schema.id()) {
            return Ok(());
        }
        if let Some(rules) = self.rules.by_node.get(&schema.id()) {
            for rule in rules {
                self.run(rule, schema, new, old, at)?;
            }
        }
        match new {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let old = old.and_then(|old| old.get(name));
                    if let Some(property) = schema.property(name) {
                        self.visit(property, value, old, &at.field(name))?;
                    } else if let Some(additional) = schema.additional() {
                        self.visit(additional, value, old, &at.key(name))?;
                    }
                }
            }
            Value::Array(items) => {
                let Some(of) = schema.items() else {
                    return Ok(());
                };
                let old = OldItems::new(schema, old);
                for (index, item) in items.iter().enumerate() {
                    self.visit(of, item, old.of(item), &at.index(index))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn run(
        &mut self,
        rule: &CompiledRule,
        schema: Schema<'_>,
        new: &Value,
        old: Option<&Value>,
        at: &FieldPath<'_>,
    ) -> Result<(), StepsExhausted> {
        if rule.program.uses_old && !rule.optional_old && old.is_none() {
            return Ok(());
        }
        let this = Val::read(new, Some(schema));
        let before = old.map(|old| Val::read(old, Some(schema)));
        let before = match before {
            before if rule.optional_old => Val::Optional(before.map(Into::into)),
            before => before.unwrap_or(Val::Null),
        };
        let scope = Scope::new("self", &this);
        let scope = scope.with("oldSelf", &before);
        let meter = Meter::new(self.left.min(MAX_STEPS_PER_RULE));
        let given = meter.left();
        let machine = Evaluator {
            program: &rule.program,
            meter: &meter,
        };
        let outcome = match misfit(new, schema) {
            Some(why) => Fault::error(why),
            None => machine.run(&scope),
        };
        self.left -= given - meter.left();
        let complaint = match outcome {
            Ok(Val::Bool(true)) => return Ok(()),
            _ if !rule.program.uses_old && old == Some(new) => return Ok(()),
            Ok(Val::Bool(false)) => self.words(rule, &scope),
            Ok(other) => format!(
                "a bool is expected and the rule gave a {}",
                other.type_name()
            ),
            // An evaluation error is reported at the rule's path.
            Err(Fault::Error(error)) => {
                let said = rule.text.strip_prefix("failed rule: ");
                let said = said.unwrap_or(&rule.text);
                let words = format!("{error} evaluating rule: {said}");
                let shown = declared(schema).unwrap_or(super::validate::type_name(new));
                let shown = Value::from(shown);
                self.report(FieldErrorKind::Invalid, at.to_string(), &shown, words);
                return Ok(());
            }
            Err(Fault::Exhausted) if self.left > 0 => {
                "operation cancelled: actual cost limit exceeded evaluating rule".into()
            }
            Err(Fault::Exhausted) => {
                let words = "validation failed due to running out of cost budget, no further validation rules will be run";
                self.report(FieldErrorKind::Invalid, at.to_string(), new, words.into());
                return Err(StepsExhausted);
            }
        };
        let path = format!("{at}{}", rule.suffix);
        self.report(
            rule.kind,
            path.trim_start_matches('.').into(),
            new,
            complaint,
        );
        Ok(())
    }

    /// The message of a failed rule. A message expression that fails or returns nothing falls back
    /// to the static message.
    fn words(&mut self, rule: &CompiledRule, scope: &Scope<'_, '_>) -> String {
        let Some(program) = &rule.message else {
            return rule.text.to_string();
        };
        let meter = Meter::new(self.left.min(MAX_STEPS_PER_RULE));
        let given = meter.left();
        let machine = Evaluator {
            program,
            meter: &meter,
        };
        let outcome = machine.run(scope);
        self.left -= given - meter.left();
        match outcome {
            Ok(Val::Text(text)) if !text.trim().is_empty() && !text.contains('\n') => {
                text.trim().to_owned()
            }
            _ => rule.text.to_string(),
        }
    }

    /// Reports a failure. Objects and lists are too large to be shown.
    fn report(&mut self, kind: FieldErrorKind, path: String, value: &Value, detail: String) {
        let shown = matches!(kind, FieldErrorKind::Invalid | FieldErrorKind::Duplicate)
            && !(value.is_object() || value.is_array());
        self.problems.push(FieldError {
            kind,
            path: if path.is_empty() {
                "<nil>".into()
            } else {
                path
            },
            value: shown.then(|| value.clone()),
            detail,
        });
    }
}
