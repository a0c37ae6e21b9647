//! Expressions on a request: the `matchConditions` of webhooks.
//!
//! `object`, `oldObject` and `namespaceObject` may be anything; `request` has declared fields, so
//! that a misspelt one is refused when the expression is written. `authorizer` is not offered.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::{
    check::{Checker, Names},
    eval::{Machine, Scope},
    kind::Kind,
    meter::{Fault, Meter, PER_CALL},
    parse::parse,
    term::Program,
    value::Val,
};
use crate::crd::compile::{Compiled, compile};

/// What a condition may ask of a request.
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
        // The one declaration that leaves everything to the value.
        "options": {"x-kubernetes-int-or-string": true},
    }});
    compile(&schema, false)
});

/// A condition that can be asked.
#[derive(Debug)]
pub struct Condition {
    source: Box<str>,
    program: Program,
}

/// What a condition is asked about.
#[derive(Debug, Clone, Copy)]
pub struct Circumstances<'a> {
    /// The request without its objects.
    pub request: &'a Value,
    /// The new object, or null.
    pub object: &'a Value,
    /// The object before, or null.
    pub old: &'a Value,
}

impl Condition {
    /// Compiles an expression, or says why it can never be asked.
    pub fn compile(source: &str) -> Result<Self, String> {
        let program = parse(source).map_err(failed)?;
        let request = Kind::of(REQUEST.root()).unwrap_or(Kind::Dyn);
        let names = Names::new("request", &request);
        let names = names.with("object", &Kind::Dyn);
        let names = names.with("oldObject", &Kind::Dyn);
        let names = names.with("namespaceObject", &Kind::Dyn);
        let checker = Checker {
            root: REQUEST.root(),
        };
        match checker.kind(&program.term, &names).map_err(failed)? {
            Kind::Bool | Kind::Dyn => Ok(Self {
                source: source.into(),
                program,
            }),
            other => Err(format!("must evaluate to bool but got {other}")),
        }
    }

    /// Whether the condition holds, or why that cannot be said.
    pub fn holds(&self, of: Circumstances<'_>) -> Result<bool, String> {
        let [request, object, old] =
            [of.request, of.object, of.old].map(|value| Val::read(value, None));
        // Conditions of webhooks are not told of the namespace; the name is there all the same.
        let nothing = Value::Object(serde_json::Map::new());
        let namespace = Val::read(&nothing, None);
        let scope = Scope::new("request", &request);
        let scope = scope.with("object", &object);
        let scope = scope.with("oldObject", &old);
        let scope = scope.with("namespaceObject", &namespace);
        let meter = Meter::new(PER_CALL);
        let machine = Machine {
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
        Condition::compile(source)?.holds(Circumstances {
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
