//! Expressions on a request: the `matchConditions` of webhooks.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::{
    check::{Checker, TypeScope},
    eval::{Evaluator, Scope},
    kind::StaticType,
    meter::{Fault, MAX_STEPS_PER_RULE, Meter},
    parse::parse,
    term::Program,
    value::Val,
};
use crate::crd::compile::{Compiled, compile};

/// The declared fields of `request`.
static REQUEST: LazyLock<Compiled> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    let names = |keys: &[&str]| {
        let fields: serde_json::Map<String, Value> = keys
            .iter()
            .map(|key| ((*key).into(), text.clone()))
            .collect();
        json!({"type": "object", "properties": fields})
    };
    let kind = names(&["group", "version", "kind"]);
    let resource = names(&["group", "version", "resource"]);
    let texts = json!({"type": "array", "items": text});
    let user = json!({"type": "object", "properties": {
        "username": text, "uid": text, "groups": texts,
        "extra": {"type": "object", "additionalProperties": texts},
    }});
    let schema = json!({"type": "object", "properties": {
        "kind": kind, "resource": resource, "subResource": text,
        "requestKind": kind, "requestResource": resource, "requestSubResource": text,
        "name": text, "namespace": text, "operation": text, "userInfo": user,
        "dryRun": {"type": "boolean"},
        // The one declaration that leaves the type to the value.
        "options": {"x-kubernetes-int-or-string": true},
    }});
    compile(&schema, false)
});

/// A compiled condition.
#[derive(Debug)]
pub struct Condition {
    source: Box<str>,
    program: Program,
}

/// The input of a condition.
#[derive(Debug, Clone, Copy)]
pub struct ConditionInput<'a> {
    /// The request without its objects.
    pub request: &'a Value,
    /// The new object, or null.
    pub object: &'a Value,
    /// The old object, or null.
    pub old: &'a Value,
}

impl Condition {
    /// Compiles an expression, or says why it is invalid.
    pub fn compile(source: &str) -> Result<Self, String> {
        let program = parse(source).map_err(failed)?;
        let request = StaticType::of(REQUEST.root()).unwrap_or(StaticType::Dyn);
        let names = TypeScope::new("request", &request);
        let names = names.with("object", &StaticType::Dyn);
        let names = names.with("oldObject", &StaticType::Dyn);
        let names = names.with("namespaceObject", &StaticType::Dyn);
        let checker = Checker {
            root: REQUEST.root(),
        };
        match checker.kind(&program.term, &names).map_err(failed)? {
            StaticType::Bool | StaticType::Dyn => Ok(Self {
                source: source.into(),
                program,
            }),
            other => Err(format!("must evaluate to bool but got {other}")),
        }
    }

    /// Whether the condition holds, or why it cannot be evaluated.
    pub fn holds(&self, of: ConditionInput<'_>) -> Result<bool, String> {
        let [request, object, old] =
            [of.request, of.object, of.old].map(|value| Val::read(value, None));
        // Conditions of webhooks do not get the namespace object; the variable exists all the same.
        let nothing = Value::Object(serde_json::Map::new());
        let namespace = Val::read(&nothing, None);
        let scope = Scope::new("request", &request);
        let scope = scope.with("object", &object);
        let scope = scope.with("oldObject", &old);
        let scope = scope.with("namespaceObject", &namespace);
        let meter = Meter::new(MAX_STEPS_PER_RULE);
        let machine = Evaluator {
            program: &self.program,
            meter: &meter,
        };
        let why = match machine.run(&scope) {
            Ok(Val::Bool(holds)) => return Ok(holds),
            Ok(other) => format!("a bool is expected and not a {}", other.type_name()),
            Err(Fault::Error(error)) => error,
            Err(Fault::Exhausted) => "actual cost limit exceeded".into(),
        };
        Err(format!(
            "expression '{}' resulted in error: {why}",
            self.source
        ))
    }
}

#[expect(clippy::needless_pass_by_value, reason = "handed to `map_err`")]
fn failed(why: String) -> String {
    format!("compilation failed: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(source: &str) -> Result<bool, String> {
        let request = json!({"operation": "CREATE", "name": "a", "namespace": "obs",
            "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
            "userInfo": {"username": "admin", "groups": ["system:masters"]},
            "dryRun": true, "options": {"kind": "CreateOptions"}});
        let object = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
        Condition::compile(source)?.holds(ConditionInput {
            request: &request,
            object: &object,
            old: &Value::Null,
        })
    }

    #[test]
    fn conditions_see_the_request_and_both_objects() {
        for (source, holds) in [
            ("object.metadata.name == 'a'", true),
            ("object.metadata.name == 'zz'", false),
            ("request.operation == 'CREATE'", true),
            ("oldObject == null", true),
            ("request.userInfo.username == 'admin'", true),
            ("'a' in request.userInfo.groups", false),
            ("has(object.spec)", false),
            ("request.namespace + request.name == 'obsa'", true),
            ("object.data.k.startsWith('v')", true),
            ("request.kind.kind == 'ConfigMap' && request.dryRun", true),
            ("!has(request.subResource)", true),
            ("request.options.kind == 'CreateOptions'", true),
            ("object.data.nope == 'x' || true", true),
        ] {
            assert_eq!(ask(source), Ok(holds), "{source}");
        }
    }

    #[test]
    fn what_cannot_be_said_is_told_with_the_expression() {
        for (source, why) in [
            (
                "object.nope == 1",
                "expression 'object.nope == 1' resulted in error: no such key: nope",
            ),
            (
                "request.subResource == ''",
                "expression 'request.subResource == ''' resulted in error: no such key: subResource",
            ),
            (
                "request.nope == 1",
                "compilation failed: undefined field 'nope'",
            ),
            (
                "request.object == null",
                "compilation failed: undefined field 'object'",
            ),
            ("1", "must evaluate to bool but got int"),
        ] {
            assert_eq!(ask(source), Err(why.to_owned()), "{source}");
        }
        for source in [
            "variables.x",
            "authorizer.group('').resource('pods').check('get').allowed()",
            "a &&",
        ] {
            assert!(
                ask(source).unwrap_err().starts_with("compilation failed: "),
                "{source}"
            );
        }
    }
}
