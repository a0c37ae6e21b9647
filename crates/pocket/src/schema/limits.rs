//! Limits on values that custom resources may declare; built-in kinds have theirs in code.

use regex::Regex;

use super::NodeId;

/// A rule of `x-kubernetes-validations`, as written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ValidationRule {
    /// The CEL expression.
    pub rule: String,
    /// The message when it does not hold.
    pub message: Option<String>,
    /// A CEL expression that computes the message.
    pub message_expression: Option<String>,
    /// The cause's reason, `FieldValueInvalid` unless set.
    pub reason: Option<String>,
    /// The field of the cause, relative to the rule's path.
    pub field_path: Option<String>,
    /// `oldSelf` is an optional that may be empty, and the rule also runs on create.
    pub optional_old_self: bool,
}

/// A regular expression with the text it was written as.
#[derive(Debug, Clone)]
pub struct Pattern {
    pub source: Box<str>,
    pub regex: Regex,
}

/// Value validations of one node.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    pub minimum: Option<f64>,
    pub maximum: Option<f64>,
    pub exclusive_minimum: bool,
    pub exclusive_maximum: bool,
    pub multiple_of: Option<f64>,
    pub min_length: Option<u64>,
    pub max_length: Option<u64>,
    pub pattern: Option<Pattern>,
    pub min_items: Option<u64>,
    pub max_items: Option<u64>,
    pub unique_items: bool,
    pub min_properties: Option<u64>,
    pub max_properties: Option<u64>,
    pub all_of: Vec<NodeId>,
    pub any_of: Vec<NodeId>,
    pub one_of: Vec<NodeId>,
    pub not: Option<NodeId>,
    pub rules: Vec<ValidationRule>,
}

impl Limits {
    pub fn is_empty(&self) -> bool {
        self.minimum.is_none()
            && self.maximum.is_none()
            && self.multiple_of.is_none()
            && self.min_length.is_none()
            && self.max_length.is_none()
            && self.pattern.is_none()
            && self.min_items.is_none()
            && self.max_items.is_none()
            && !self.unique_items
            && self.min_properties.is_none()
            && self.max_properties.is_none()
            && self.all_of.is_empty()
            && self.any_of.is_empty()
            && self.one_of.is_empty()
            && self.not.is_none()
            && self.rules.is_empty()
    }

    pub(super) fn children_mut(&mut self) -> impl Iterator<Item = &mut NodeId> {
        self.all_of
            .iter_mut()
            .chain(&mut self.any_of)
            .chain(&mut self.one_of)
            .chain(self.not.iter_mut())
    }
}
